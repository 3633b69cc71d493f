// tfserving_models.h: what clients of TensorFlow Serving ask about models, the same over REST and gRPC: functions of the catalogue.
#pragma once

#include "runtime/serving/repository/repository.h"
#include "tensorflow_serving.pb.h"

namespace serin::serving {

/// A version of a model as these clients name it: by number, by label, or not at all, which is the latest.
struct Servable {
  std::string model, version, label;
};
Servable servable_of(const tensorflow::serving::ModelSpec& spec);

/// kNotFound, kUnavailable; kInvalidArgument: no such label.
Result<std::shared_ptr<Version>> find_servable(const Catalogue& now, const Servable& servable);
/// Every version with its state, or the one that is named.
Result<tensorflow::serving::GetModelStatusResponse> servable_status(const Catalogue& now, const Servable& servable);
/// Its inputs and outputs as the signature "serving_default".
Result<tensorflow::serving::GetModelMetadataResponse> servable_metadata(const Catalogue& now, const Servable& servable);

/// As proto3's JSON, with what has its default value as well: clients look for it.
std::string print_json(const google::protobuf::Message& message);

}  // namespace serin::serving
