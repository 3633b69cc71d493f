// tfserving_config.h: reads the configuration files of tensorflow_model_server's flags, each a message in protobuf's text format.
//
//   --model_config_file        model_config_list { config { name: "digits" base_path: "/models/digits"
//                                                           model_version_policy { latest { num_versions: 2 } } } }
//   --ssl_config_file          server_key: "-----BEGIN ..." server_cert: "-----BEGIN ..." client_verify: true custom_ca: "-----BEGIN ..."
//   --monitoring_config_file   prometheus_config { enable: true path: "/metrics" }
//
// Errors name the file, and the line of an error in it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/net/tls.h"
#include "runtime/serving/settings/model_source.h"

namespace tensorflow::serving {
class ModelServerConfig;
}

namespace serin::serving {

/// Returns one root for each model. An unknown field is an error, as in the other files.
Result<ListedModels> read_tf_config(const std::string& path);
Result<std::vector<ModelRoot>> roots_of(const tensorflow::serving::ModelServerConfig& config);

/// The authority applies if client certificates are required, as in TensorFlow Serving.
Result<net::TlsServerTexts> read_tf_ssl_config(const std::string& path);
/// Returns the path of the metrics page for Prometheus; nothing: no such page.
Result<std::optional<std::string>> read_tf_monitoring_config(const std::string& path);
inline constexpr const char* kTfMetricsPath = "/monitoring/prometheus/metrics";  ///< default path

}  // namespace serin::serving
