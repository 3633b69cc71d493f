// model_config.h: config.pbtxt, as Triton's repositories have it (protocol/proto/model_config.proto): read, turned into settings, held against the model, and
// told to clients with all that it left out.
//
//   SERIN_TRY(ReadModelConfig read, parse_model_config(text));
//   SERIN_CHECK(apply_model_config(read, folder, settings));          // read.ignored: what nobody here does
//
// The model's file knows its tensors itself; what a configuration says of them must agree with it, and may narrow it: a fixed size where the model leaves it open.
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
  std::vector<std::string> ignored;  ///< fields that nobody here knows or honours
};

/// The text format of protobuf; kInvalidArgument with line and column. Unknown fields are ignored, by name.
Result<ReadModelConfig> parse_model_config(std::string_view text);
/// The same as JSON. `file` for messages.
Result<ReadModelConfig> parse_model_config_json(std::string_view json);

/// Over the settings there are. Files it names lie in `folder`. What is honoured in part, or not at all, joins `ignored`.
Status apply_model_config(ReadModelConfig& read, const std::string& folder, ModelSettings& settings);

/// Tensors that settings declare, against those that the model has: kInvalidArgument where one is not there or another; a fixed size where the model leaves it open
/// holds for clients from now on, and so does another shape of the same elements. And the labels of classes, and by whose name clients know what runs it.
Status apply_declared_tensors(const ModelSettings& settings, Served& served);

/// All of it, as Triton tells it: what was declared, and the rest from the model and the defaults.
inference::ModelConfig full_model_config(const Version& version, const ModelSettings& settings);

}  // namespace serin::serving
