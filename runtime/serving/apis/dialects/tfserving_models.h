// tfserving_models.h: answers queries of TensorFlow Serving's clients about models from the catalogue, for REST and gRPC.
#pragma once

#include "runtime/serving/repository/repository.h"
#include "tensorflow_serving.pb.h"

namespace serin::serving {

/// A version of a model as these clients name it: by number, by label, or not at all, which means the latest.
struct Servable {
  std::string model, version, label;
};
Servable servable_of(const tensorflow::serving::ModelSpec& spec);

/// kNotFound, kUnavailable; kInvalidArgument: no such label.
Result<std::shared_ptr<Version>> find_servable(const Catalogue& now, const Servable& servable);
/// Returns every version with its state, or the named one.
Result<tensorflow::serving::GetModelStatusResponse> servable_status(const Catalogue& now, const Servable& servable);
/// Returns its inputs and outputs as the signature "serving_default".
Result<tensorflow::serving::GetModelMetadataResponse> servable_metadata(const Catalogue& now, const Servable& servable);

/// Prints proto3's JSON, including fields with default values, because clients read them.
std::string print_json(const google::protobuf::Message& message);

}  // namespace serin::serving
