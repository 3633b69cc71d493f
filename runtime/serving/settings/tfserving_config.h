// tfserving_config.h: the files that tensorflow_model_server's flags name, each a message in protobuf's text format.
//
//   --model_config_file        model_config_list { config { name: "digits" base_path: "/models/digits" model_version_policy { latest { num_versions: 2 } } } }
//   --ssl_config_file          server_key: "-----BEGIN ..." server_cert: "-----BEGIN ..." client_verify: true custom_ca: "-----BEGIN ..."
//   --monitoring_config_file   prometheus_config { enable: true path: "/metrics" }
//
// Errors name the file, and the line where it is a mistake in it.
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

/// One root for each model. No field may have a name that there is not, as in the other files.
Result<ListedModels> read_tf_config(const std::string& path);
Result<std::vector<ModelRoot>> roots_of(const tensorflow::serving::ModelServerConfig& config);

/// The authority counts where certificates of clients are asked for, as there.
Result<net::TlsServerTexts> read_tf_ssl_config(const std::string& path);
/// Where Prometheus finds the page of metrics; nothing: it is not there.
Result<std::optional<std::string>> read_tf_monitoring_config(const std::string& path);
inline constexpr const char* kTfMetricsPath = "/monitoring/prometheus/metrics";  ///< where nothing else is said

}  // namespace serin::serving
