// tfserving_models.h: answers queries of TensorFlow Serving's clients about models from the catalogue, for REST and gRPC.
#pragma once

#include "runtime/protocol/tensorflow/tfserving_examples.h"
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
/// The version with the signature that a request names. kInvalidArgument: there is none of that name, or it is for another method.
Result<std::shared_ptr<Version>> find_signature(const std::shared_ptr<Version>& version, std::string_view name, protocol::TfMethod method);
/// Returns every version with its state, or the named one.
Result<tensorflow::serving::GetModelStatusResponse> servable_status(const Catalogue& now, const Servable& servable);
/// Returns the inputs and outputs of each signature that is served; a model that has no names for them has "serving_default".
Result<tensorflow::serving::GetModelMetadataResponse> servable_metadata(const Catalogue& now, const Servable& servable);

/// Prints proto3's JSON, including fields with default values, because clients read them.
std::string print_json(const google::protobuf::Message& message);

}  // namespace serin::serving
