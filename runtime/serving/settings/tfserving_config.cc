#include "runtime/serving/settings/tfserving_config.h"

#include <fmt/format.h>

#include <set>

#include "runtime/base/file.h"
#include "runtime/serving/settings/text_format.h"
#include "tensorflow_model_server.pb.h"

namespace serin::serving {
namespace {

namespace tfs = tensorflow::serving;

constexpr size_t kLargest = size_t{1} << 20;

Result<VersionPolicy> policy_of(const tfs::FileSystemStoragePathSourceConfig::ServableVersionPolicy& from) {
  if (from.has_all()) return VersionPolicy();
  if (!from.has_specific()) return VersionPolicy{.latest = from.latest().num_versions() > 0 ? from.latest().num_versions() : 1U};
  VersionPolicy policy;
  for (const int64_t version : from.specific().versions()) {
    if (version < 0) return Error{Code::kInvalidArgument, fmt::format("version {} is none: they begin with 0", version)};
    policy.specific.push_back(static_cast<uint64_t>(version));
  }
  if (policy.specific.empty()) return Error{Code::kInvalidArgument, "model_version_policy: specific names no versions"};
  return policy;
}

Result<ModelRoot> root_of(const tfs::ModelConfig& config) {
  if (config.name().empty() || config.base_path().empty()) return Error{Code::kInvalidArgument, "needs a name and a base_path"};
  ModelRoot root{.path = local_path(config.base_path()), .name = config.name()};
  SERIN_TRY(root.versions, policy_of(config.model_version_policy()));
  for (const auto& [label, version] : config.version_labels()) {
    if (version < 0) return Error{Code::kInvalidArgument, fmt::format("label '{}': version {} is none: they begin with 0", label, version)};
    root.labels[label] = static_cast<uint64_t>(version);
  }
  return root;
}

/// A field that there is not is a mistake, as TensorFlow Serving has it.
template <class Message>
Result<Message> read_message(const std::string& path, Result<std::string> (*read)(const std::string&, size_t) = read_file_or_pipe) {
  SERIN_TRY(const std::string text, read(path, kLargest));
  Message message;
  const auto unknown = parse_text_format(text, message);
  if (!unknown) return unknown.error().in(path);
  if (unknown->empty()) return message;
  const UnknownField& field = unknown->front();
  return Error{Code::kInvalidArgument, fmt::format("{}: unknown field {} (line {}){}", path, field.name, field.line,
                                                   field.meant.empty() ? "" : fmt::format("; did you mean '{}'?", field.meant))};
}

}  // namespace

Result<std::vector<ModelRoot>> roots_of(const tfs::ModelServerConfig& config) {
  std::vector<ModelRoot> roots;
  std::set<std::string> names;
  for (const tfs::ModelConfig& model : config.model_config_list().config()) {
    auto root = root_of(model);
    if (!root) return root.error().in(fmt::format("model '{}'", model.name().substr(0, 256)));
    if (!names.insert(model.name()).second)
      return Error{Code::kInvalidArgument, fmt::format("model '{}': it is named twice", model.name().substr(0, 256))};
    roots.push_back(std::move(*root));
  }
  if (roots.empty()) return Error{Code::kInvalidArgument, "model_config_list names no model"};
  return roots;
}

Result<ListedModels> read_tf_config(const std::string& path) {
  SERIN_TRY(const auto config, read_message<tfs::ModelServerConfig>(path));
  auto roots = roots_of(config);
  if (!roots) return roots.error().in(path);
  ListedModels listed{.roots = std::move(*roots)};
  for (const tfs::ModelConfig& model : config.model_config_list().config())
    if (model.logging_config().has_log_collector_config())
      listed.remarks.push_back(
          fmt::format("{}: model '{}': logging_config changes nothing: requests are not kept in files", path, model.name()));
  return listed;
}

/// It is read again when it changes, which a pipe cannot be.
Result<net::TlsServerTexts> read_tf_ssl_config(const std::string& path) {
  SERIN_TRY(tfs::SSLConfig config, read_message<tfs::SSLConfig>(path, read_file));
  if (config.server_key().empty() || config.server_cert().empty())
    return Error{Code::kInvalidArgument, fmt::format("{}: needs a server_key and a server_cert", path)};
  net::TlsServerTexts texts{.certificate = config.server_cert(), .key = config.server_key(), .client_ca = {}};
  if (!config.client_verify()) return texts;
  if (config.custom_ca().empty())
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: client_verify needs the custom_ca that clients' certificates are signed by", path)};
  texts.client_ca = config.custom_ca();
  return texts;
}

Result<std::optional<std::string>> read_tf_monitoring_config(const std::string& path) {
  SERIN_TRY(const auto config, read_message<tfs::MonitoringConfig>(path));
  const tfs::PrometheusConfig& prometheus = config.prometheus_config();
  if (!prometheus.enable()) return std::optional<std::string>();
  if (prometheus.path().empty()) return std::optional<std::string>(kTfMetricsPath);
  if (!prometheus.path().starts_with('/'))
    return Error{Code::kInvalidArgument, fmt::format("{}: prometheus_config: path {} does not begin with /", path, prometheus.path())};
  return std::optional<std::string>(prometheus.path());
}

}  // namespace serin::serving
