// ovms_config.h: reads the configuration of OpenVINO Model Server: config.json, and the model options of its command line.
//
//   {"model_config_list": [{"config": {"name": "digits", "base_path": "digits",
//                                      "model_version_policy": {"specific": {"versions": [1, 2]}}}}],
//    "monitoring": {"metrics": {"enable": true, "metrics_list": ["ovms_streams"]}}}
//
// A relative base_path starts at the file's own folder. An unknown key is an error, as there. The remarks name known keys without effect;
// keys that would change answers are refused. Errors name file and line.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/serving/settings/model_source.h"

namespace serin::serving {

struct OvmsConfig {
  ListedModels models;
  bool metrics = false;
  std::vector<std::string> metrics_list;  ///< empty: the default ones
};
Result<OvmsConfig> read_ovms_config(const std::string& path);
/// The same without the parts that are read at the start only.
Result<ListedModels> read_ovms_models(const std::string& path);

/// Parses {"all": {}}, {"latest": {"num_versions": 2}} or {"specific": {"versions": [1, 3]}}.
Result<VersionPolicy> parse_ovms_policy(const std::string& text);

/// Checks layout, mean, scale and color_format, as text or JSON: kUnsupported if inputs would have to be changed before the model reads
/// them.
Status check_ovms_step(const std::string& key, const std::string& text);

}  // namespace serin::serving
