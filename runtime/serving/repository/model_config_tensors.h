// model_config_tensors.h: checks a configuration against the loaded model, and reports it to clients with the parts that it omits.
//
// The model's file defines its tensors. A configuration must agree with it, and may narrow it: a fixed size for an open dimension.
#pragma once

#include "model_config.pb.h"
#include "runtime/base/result.h"
#include "runtime/serving/scheduling/served.h"
#include "runtime/serving/settings/settings.h"

namespace serin::serving {

/// Compares the declared tensors with those of the model: kInvalidArgument if one is missing or differs. A fixed size for an open dimension
/// applies to clients from now on, and so does another shape with the same elements. It also sets the labels of classes and the platform's
/// name.
Status apply_declared_tensors(const ModelSettings& settings, Served& served);

/// Returns the full configuration as in Triton: the declared part, and the rest from the model and the defaults.
/// `cores`: base for the defaults (ComputePool::cores).
inference::ModelConfig full_model_config(const ServedModel& model, int cores, const ModelSettings& settings);

}  // namespace serin::serving
