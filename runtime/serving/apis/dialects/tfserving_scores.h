// tfserving_scores.h: parts of the methods of TensorFlow Serving's PredictionService: the version that a message means, and the answer to a
// Classify or Regress task.
#pragma once

#include <span>

#include "runtime/protocol/tensorflow/tfserving_grpc.h"
#include "runtime/serving/apis/dialects/tfserving_models.h"
#include "runtime/serving/apis/frontend.h"
#include "runtime/serving/apis/inference.h"

namespace serin::serving {

/// The version that a request means, with its signature.
Result<std::shared_ptr<Version>> find_signature_of(Frontend& frontend, const protocol::TfModelSpec& spec, protocol::TfMethod method);
int64_t number_of(const Version& version);

/// Adds the answer to a task: of all outputs those that it asked for.
Status append_result(const Finished& finished, protocol::TfMethod task, tensorflow::serving::MultiInferenceResponse& answer);

}  // namespace serin::serving
