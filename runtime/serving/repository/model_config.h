// model_config.h: reads config.pbtxt of Triton repositories, converts it to settings, checks it against the model, and reports it to
// clients.
//
// The schema is protocol/proto/model_config.proto. The reported configuration includes all omitted fields.
//
//   SERIN_TRY(ReadModelConfig read, parse_model_config(text));
//   SERIN_CHECK(apply_model_config(read, folder, settings));          // read.ignored: fields without effect here
//
// The model's file defines its tensors. A configuration must agree with it, and may narrow it: a fixed size for an open dimension.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model_config.pb.h"
#include "runtime/base/result.h"
#include "runtime/serving/repository/version.h"
#include "runtime/serving/settings/settings.h"

namespace serin::serving {

struct ReadModelConfig {
  inference::ModelConfig config;
  std::vector<std::string> ignored;  ///< fields that are unknown or have no effect here
};

/// Parses protobuf's text format; kInvalidArgument with line and column. Unknown fields are ignored; the result lists their names.
Result<ReadModelConfig> parse_model_config(std::string_view text);
/// The same from JSON. `file` is for messages.
Result<ReadModelConfig> parse_model_config_json(std::string_view json);

/// Applies it over the existing settings. Files that it names must be in `folder`. Fields that are honoured partly or not at all are added
/// to `ignored`.
Status apply_model_config(ReadModelConfig& read, const std::string& folder, ModelSettings& settings);

/// Compares the declared tensors with those of the model: kInvalidArgument if one is missing or differs. A fixed size for an open dimension
/// applies to clients from now on, and so does another shape with the same elements. It also sets the labels of classes and the platform's
/// name.
Status apply_declared_tensors(const ModelSettings& settings, Served& served);

/// Returns the full configuration as in Triton: the declared part, and the rest from the model and the defaults.
inference::ModelConfig full_model_config(const Version& version, const ModelSettings& settings);

}  // namespace serin::serving
