#include "router/config/config_kubernetes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "router/config/config_parts.h"
#include "router/config/config_tls.h"
#include "router/config/endpoint_list.h"
#include "runtime/base/number.h"

namespace serin::router {
namespace {

using config::Node;
using std::chrono::milliseconds;

constexpr size_t kLongestLabel = 63, kLongestPrefix = 253, kLongestPortName = 15;
constexpr milliseconds kLongestRequest{3000};

bool is_lower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }

bool is_name(std::string_view text, size_t most) {
  return !text.empty() && text.size() <= most && std::ranges::all_of(text, is_lower) && !text.starts_with('-') && !text.ends_with('-');
}

/// Of a label: letters, digits and '-', '_', '.' between them.
bool is_value(std::string_view text) {
  const auto word = [](char c) { return is_lower(c) || (c >= 'A' && c <= 'Z') || c == '_' || c == '.'; };
  const auto outer = [](char c) { return c != '-' && c != '_' && c != '.'; };
  return text.empty() || (text.size() <= kLongestLabel && std::ranges::all_of(text, word) && outer(text.front()) && outer(text.back()));
}

/// "name", or "prefix.of.a.domain/name".
bool is_key(std::string_view text) {
  const size_t slash = text.find('/');
  const std::string_view name = slash == std::string_view::npos ? text : text.substr(slash + 1);
  const std::string_view prefix = slash == std::string_view::npos ? "a" : text.substr(0, slash);
  return !name.empty() && is_value(name) && !prefix.empty() && prefix.size() <= kLongestPrefix &&
         std::ranges::all_of(prefix, [](char c) { return is_lower(c) || c == '.'; });
}

/// The name of a port, or its number.
Result<std::string> read_port(const Node& node) {
  SERIN_TRY(std::string text, node.text());
  const bool number = !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  const auto port = parse_number<uint16_t>(text);
  if (number ? !port || *port == 0 : !is_name(text, kLongestPortName))
    return node.error(fmt::format("must be the name of a port (at most {} lower-case letters, digits and '-'), or a number from 1 to 65535",
                                  kLongestPortName));
  return number ? std::to_string(*port) : text;
}

Result<kubernetes::Labels> read_labels(const Node& node) {
  if (!node.is_map() || node.keys().empty()) return node.error("must be a map of labels, such as {app: digits, version: \"2\"}");
  kubernetes::Labels labels;
  for (const std::string& key : node.keys()) {
    SERIN_TRY(std::string value, node.text(key, ""));
    if (!is_key(key) || !is_value(value)) return node.error(fmt::format("'{}: {}' is no label of Kubernetes", key, value));
    if (!labels.emplace(key, std::move(value)).second) return node.error(fmt::format("label '{}' given twice", key));
  }
  return labels;
}

Result<kubernetes::Names> read_taints(const Node& node) {
  if (!node.is_list()) return node.error("must be a list of keys of taints, such as [karpenter.sh/disrupted]");
  kubernetes::Names keys;
  for (const Node& entry : node.items()) {
    SERIN_TRY(std::string key, entry.text());
    if (!is_key(key)) return entry.error(fmt::format("'{}' is no key of a taint", key));
    keys.insert(std::move(key));
  }
  return keys;
}

}  // namespace

Result<std::string> read_label(const Node& owner, std::string_view key, std::string fallback) {
  SERIN_TRY(std::string text, owner.text(key, std::move(fallback)));
  if (const auto given = owner.find(key); given && !is_name(text, kLongestLabel))
    return given->error(fmt::format("must be 1 to {} lower-case letters, digits and '-'", kLongestLabel));
  return text;
}

Result<KubernetesConfig> read_kubernetes(const Node& node) {
  SERIN_CHECK(node.allow_only({"server", "namespace", "zone", "node_taints", "token_file", "timeout", "tls"}));
  KubernetesConfig kubernetes;
  SERIN_TRY(kubernetes.name_space, read_label(node, "namespace", ""));
  SERIN_TRY(kubernetes.zone, node.text("zone", ""));
  if (const auto zone = node.find("zone"); zone && (kubernetes.zone.empty() || !is_value(kubernetes.zone)))
    return zone->error("must be the zone of a node, as its label topology.kubernetes.io/zone says");
  if (const auto taints = node.find("node_taints")) {
    SERIN_TRY(kubernetes.node_taints, read_taints(*taints));
  }
  SERIN_TRY(kubernetes.timeout, read_milliseconds(node, "timeout", kubernetes.timeout, milliseconds(10)));
  if (kubernetes.timeout > kLongestRequest)
    return node.find("timeout")->error("must be from 10ms to 3s, because a router that leads renews its lease within 5s");
  SERIN_TRY(kubernetes.token_file, node.text("token_file", ""));
  const auto server = node.find("server");
  if (!server) {
    for (const char* key : {"token_file", "tls"})
      if (const auto given = node.find(key)) return given->error("belongs to `server`; a pod has its own");
    return kubernetes;
  }
  SERIN_TRY(const std::string text, server->text());
  const auto url = net::parse_url(text);
  if (!url || url->path != "/") return server->error(fmt::format("must be a url such as https://10.0.0.1:6443, not '{}'", text));
  kubernetes.server = url->origin;
  if (kubernetes.name_space.empty()) return node.error("needs namespace, because server is no pod's own");
  SERIN_TRY(kubernetes.tls, read_client_tls(node, url->origin.secure));
  return kubernetes;
}

Result<SliceSource> read_slices(const Node& node, const std::optional<Node>& grpc_port) {
  SERIN_CHECK(node.allow_only({"service", "selector", "namespace", "port", "scheme", "path"}));
  SliceSource source;
  kubernetes::SliceSelection& selection = source.selection;
  const auto service = node.find("service"), selector = node.find("selector");
  if (service.has_value() == selector.has_value())
    return node.error("must have one of service (the name of a Service) and selector (labels of EndpointSlices)");
  if (service) {
    SERIN_TRY(std::string name, read_label(node, "service", ""));
    selection.labels.emplace(kubernetes::kServiceLabel, std::move(name));
  } else {
    SERIN_TRY(selection.labels, read_labels(*selector));
  }
  SERIN_TRY(selection.name_space, read_label(node, "namespace", ""));
  SERIN_TRY(const Node port, node.at("port"));
  SERIN_TRY(selection.port, read_port(port));
  std::string scheme = "http";
  if (const auto given = node.find("scheme")) {
    SERIN_TRY(scheme, given->one_of({"http", "https", "grpc", "grpcs"}));
  }
  if (grpc_port) {
    if (scheme.starts_with("grpc")) return grpc_port->error("belongs to an http scheme; with this one `port` answers gRPC");
    SERIN_TRY(selection.grpc_port, read_port(*grpc_port));
  }
  SERIN_TRY(const std::string path, node.text("path", ""));
  const auto pattern = parse_endpoint(fmt::format("{}://address:1{}", scheme, path));
  if (const auto given = node.find("path"); given && (!path.starts_with('/') || !pattern))
    return given->error("must begin with '/' and have no '?'");
  source.pattern = *pattern;
  return source;
}

/// Every version has a backend: whichever is stable or under way must be able to get requests.
Result<HttpRouteConfig> read_http_route(const Node& node, const ServiceConfig& service) {
  SERIN_CHECK(node.allow_only({"name", "namespace", "backends"}));
  HttpRouteConfig route;
  SERIN_CHECK(node.at("name"));
  SERIN_TRY(route.name, read_label(node, "name", ""));
  SERIN_TRY(route.name_space, read_label(node, "namespace", ""));
  SERIN_TRY(const Node backends, node.at("backends"));
  if (!backends.is_map()) return backends.error("must be a map of versions and backends, such as {\"1\": serin, \"2\": serin-canary}");
  for (const std::string& key : backends.keys())
    if (version_index(service, key) == Split::kNoCanary)
      return backends.error(fmt::format("'{}' is no version of service '{}'", key, service.name));
  for (const VersionConfig& version : service.versions) {
    if (!backends.find(version.name)) return backends.error(fmt::format("version '{}' of the service needs a backend", version.name));
    SERIN_TRY(std::string backend, read_label(backends, version.name, ""));
    if (std::ranges::find(route.backends, backend) != route.backends.end())
      return backends.error(fmt::format("backend '{}' given twice", backend));
    route.backends.push_back(std::move(backend));
  }
  if (service.tracks > 1) return node.error("belongs to a service with one rollout at once: leave `rollouts` out");
  return route;
}

Result<kubernetes::Cluster> cluster_of(const KubernetesConfig& config) {
  kubernetes::Cluster cluster;
  if (config.server) {
    cluster.server = *config.server;
    cluster.token_file = config.token_file;
    cluster.tls = config.tls;
  } else {
    auto own = kubernetes::in_cluster();
    if (!own) return own.error().in("kubernetes");
    cluster = *std::move(own);
  }
  if (!config.name_space.empty()) cluster.name_space = config.name_space;
  cluster.timeout = config.timeout;
  return cluster;
}

std::string zone_of(const KubernetesConfig& config) {
  if (!config.zone.empty()) return config.zone;
  const char* zone = std::getenv("NODE_ZONE");
  return zone == nullptr ? "" : zone;
}

}  // namespace serin::router
