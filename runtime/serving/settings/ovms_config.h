// ovms_config.h: what OpenVINO Model Server is configured with: its config.json, and what of a model may stand there and on its command line.
//
//   {"model_config_list": [{"config": {"name": "digits", "base_path": "digits", "model_version_policy": {"specific": {"versions": [1, 2]}}}}],
//    "monitoring": {"metrics": {"enable": true, "metrics_list": ["ovms_streams"]}}}
//
// A base_path is looked for from the file's own folder on. An unknown key is an error, as there; what is known and changes nothing is named in the remarks, and
// what would change answers is refused. Errors name file and line.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/serving/settings/model_source.h"

namespace serin::serving {

struct OvmsConfig {
  ListedModels models;
  bool metrics = false;
  std::vector<std::string> metrics_list;  ///< empty: the usual ones
};
Result<OvmsConfig> read_ovms_config(const std::string& path);
/// The same without what is read at the start only.
Result<ListedModels> read_ovms_models(const std::string& path);

/// {"all": {}}, {"latest": {"num_versions": 2}} or {"specific": {"versions": [1, 3]}}
Result<VersionPolicy> parse_ovms_policy(const std::string& text);

/// Of layout, mean, scale and color_format, as a text or JSON: kUnsupported where inputs would have to be changed before the model sees them.
Status check_ovms_step(const std::string& key, const std::string& text);

}  // namespace serin::serving
