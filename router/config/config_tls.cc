#include "router/config/config_tls.h"

#include <fmt/format.h>

#include <vector>

#include "router/config/config.h"

namespace serin::router {
namespace {

using config::Node;
using ContextResult = Result<std::shared_ptr<net::TlsContext>>;

/// A path, where the key is there at all.
Result<std::string> read_path(const Node& owner, std::string_view key) {
  SERIN_TRY(std::string path, owner.text(key, ""));
  if (const auto node = owner.find(key); node && path.empty()) return node->error("must be the path of a file");
  return path;
}

Result<net::TlsVersion> read_version(const Node& owner, net::TlsVersion usual) {
  const auto node = owner.find("min_version");
  if (!node) return usual;
  SERIN_TRY(const std::string text, node->one_of({"1.2", "1.3"}));
  return text == "1.3" ? net::TlsVersion::k13 : net::TlsVersion::k12;
}

ContextResult at(const Node& node, ContextResult made) {
  if (!made) return node.error(made.error().message);
  return made;
}

}  // namespace

ContextResult read_listener_tls(const Node& node, bool* requires_certificates) {
  SERIN_CHECK(node.allow_only({"cert", "key", "client_ca", "client_certificates", "min_version"}));
  net::TlsServerOptions options;
  SERIN_CHECK(node.at("cert"));
  SERIN_CHECK(node.at("key"));
  SERIN_TRY(options.certificate, read_path(node, "cert"));
  SERIN_TRY(options.key, read_path(node, "key"));
  SERIN_TRY(options.client_ca, read_path(node, "client_ca"));
  SERIN_TRY(options.least, read_version(node, options.least));
  if (const auto wanted = node.find("client_certificates")) {
    if (options.client_ca.empty()) return wanted->error("needs client_ca: the authorities that may sign clients' certificates");
    SERIN_TRY(const std::string word, wanted->one_of({"required", "optional"}));
    options.clients_may_omit = word == "optional";
  }
  if (requires_certificates != nullptr) *requires_certificates = !options.client_ca.empty() && !options.clients_may_omit;
  return at(node, net::TlsContext::for_server(std::move(options)));
}

ContextResult read_client_tls(const Node& owner, bool secure) {
  const auto node = owner.find("tls");
  if (!secure) {
    if (node) return node->error("belongs to an url that begins with https:// (or grpcs://), and there is none");
    return nullptr;
  }
  if (!node) return at(owner, net::TlsContext::for_client({}));
  SERIN_CHECK(node->allow_only({"ca", "cert", "key", "server_name", "insecure_skip_verify", "min_version"}));
  net::TlsClientOptions options;
  SERIN_TRY(options.ca, read_path(*node, "ca"));
  SERIN_TRY(options.certificate, read_path(*node, "cert"));
  SERIN_TRY(options.key, read_path(*node, "key"));
  SERIN_TRY(options.server_name, node->text("server_name", ""));
  SERIN_TRY(options.insecure_skip_verify, node->boolean("insecure_skip_verify", false));
  SERIN_TRY(options.least, read_version(*node, options.least));
  if (options.certificate.empty() != options.key.empty()) return node->error("cert and key belong together");
  if (options.insecure_skip_verify && !(options.ca.empty() && options.server_name.empty()))
    return node->error("insecure_skip_verify believes every certificate: ca and server_name have no effect with it");
  return at(*node, net::TlsContext::for_client(std::move(options)));
}

std::vector<std::shared_ptr<net::TlsContext>> tls_contexts(const RouterConfig& config) {
  std::vector<std::shared_ptr<net::TlsContext>> all = {config.tls, config.admin.tls, config.prometheus_tls, config.kubernetes.tls};
  if (config.replicas && config.replicas->etcd) all.push_back(config.replicas->etcd->tls);
  if (config.external_metrics) all.push_back(config.external_metrics->tls);
  if (config.external_scaler) all.push_back(config.external_scaler->tls);
  for (const ServiceConfig& service : config.services)
    for (const VersionConfig& version : service.versions) all.push_back(version.tls);
  for (const WebhookConfig& webhook : config.webhooks) all.push_back(webhook.tls);
  return all;
}

}  // namespace serin::router
