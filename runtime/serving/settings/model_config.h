// model_config.h: reads config.pbtxt of Triton repositories, and converts it to settings.
//
// The schema is protocol/proto/model_config.proto. The reported configuration includes all omitted fields.
//
//   SERIN_TRY(ReadModelConfig read, parse_model_config(text));
//   SERIN_CHECK(apply_model_config(read, folder, settings));          // read.ignored: fields without effect here
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model_config.pb.h"
#include "runtime/base/result.h"
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

}  // namespace serin::serving
