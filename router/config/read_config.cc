// read_config.cc: every key of router.yaml, each read by a function named after it.
//
// Nothing is guessed: a key that is not known, given twice or of the wrong kind is refused with its line. Nothing here opens a socket or resolves a
// name.

#include "router/config/read_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "router/config/config_kubernetes.h"
#include "router/config/config_outcomes.h"
#include "router/config/config_parts.h"
#include "router/config/config_recording.h"
#include "router/config/config_split.h"
#include "router/config/config_store.h"
#include "router/config/config_tls.h"
#include "router/config/config_webhooks.h"
#include "router/config/endpoint_list.h"

namespace serin::router {
namespace {

using config::Node;
using std::chrono::milliseconds;

constexpr size_t kMostVersions = 63;  // an index of six bits, one of which says "none" (split.h)
constexpr milliseconds kAskFile{1000}, kAskName{5000};
constexpr int64_t kLargestBody = int64_t{4} << 30;

/// ADDRESS:PORT, or {listen, tokens, rate, tls}. Beyond loopback somebody must have thought about who may steer.
Result<AdminConfig> read_admin(const Node& node) {
  AdminConfig admin;
  bool certified = false;  // only who has a certificate gets in
  if (node.is_map()) {
    SERIN_CHECK(node.allow_only({"listen", "tokens", "rate", "tls"}));
    if (const auto listen = node.find("listen")) {
      SERIN_TRY(admin.listen, read_listen(*listen));
    }
    SERIN_TRY(admin.tokens, node.text("tokens", ""));
    if (const auto tokens = node.find("tokens"); tokens && admin.tokens.empty())
      return tokens->error("must be the path of a file, or none");
    SERIN_TRY(admin.rate, node.integer("rate", 0, 100'000, admin.rate));
    if (const auto tls = node.find("tls")) {
      SERIN_TRY(admin.tls, read_listener_tls(*tls, &certified));
    }
  } else {
    SERIN_TRY(admin.listen, read_listen(node));
  }
  if (admin.tokens.empty() && !certified && !admin.listen.is_loopback())
    return node.error(fmt::format(
        "{} is not loopback: restrict access to the router with {{listen: ..., tokens: FILE}} or tls with a client_ca, or allow "
        "every client that reaches the port: tokens: none",
        admin.listen.address));
  if (admin.tokens == "none") admin.tokens.clear();
  return admin;
}

/// The API server proves that it asks by the certificate of its front proxy.
Result<ExternalMetricsConfig> read_external_metrics(const Node& node) {
  SERIN_CHECK(node.allow_only({"listen", "tls"}));
  ExternalMetricsConfig metrics;
  SERIN_TRY(const Node listen, node.at("listen"));
  SERIN_TRY(metrics.listen, read_listen(listen));
  SERIN_TRY(const Node tls, node.at("tls"));
  bool certified = false;
  SERIN_TRY(metrics.tls, read_listener_tls(tls, &certified));
  if (!certified && !metrics.listen.is_loopback())
    return node.error(
        fmt::format("{} is not loopback: give tls a client_ca, the authority of the API server's front proxy", metrics.listen.address));
  return metrics;
}

/// Who may see the load of a version? Beyond loopback somebody must have thought about that.
Result<ExternalScalerConfig> read_external_scaler(const Node& node) {
  SERIN_CHECK(node.allow_only({"listen", "tls"}));
  ExternalScalerConfig scaler;
  SERIN_TRY(const Node listen, node.at("listen"));
  SERIN_TRY(scaler.listen, read_listen(listen));
  if (const auto tls = node.find("tls"); tls && tls->is_map()) {
    SERIN_TRY(scaler.tls, read_listener_tls(*tls));
  } else if (tls) {
    SERIN_CHECK(tls->one_of({"none"}));
  } else if (!scaler.listen.is_loopback()) {
    return node.error(
        fmt::format("{} is not loopback: give tls, or let every client that reaches the port read the load of each version: tls: none",
                    scaler.listen.address));
  }
  return scaler;
}

/// Names stand in URLs, in metrics and in the log.
Result<std::string> read_name(const Node& owner) {
  SERIN_TRY(const Node node, owner.at("name"));
  SERIN_TRY(std::string name, node.text());
  const auto odd = [](char c) { return c <= ' ' || c == 0x7F || c == '/' || c == ':' || c == '?' || c == '#' || c == '%'; };
  if (name.empty() || name.size() > kLongestName || std::ranges::any_of(name, odd))
    return node.error(
        fmt::format("must be a name of 1 to {} characters without spaces, control characters and any of / : ? # %", kLongestName));
  return name;
}

Result<net::Limits> read_limits(const Node& node) {
  SERIN_CHECK(node.allow_only({"request_line_bytes", "header_bytes", "header_count", "body_bytes", "chunks", "streams", "connections",
                               "header_timeout", "body_timeout", "silence_timeout", "idle_timeout", "write_timeout"}));
  net::Limits limits;
  const auto size = [&node](std::string_view key, int64_t least, int64_t most, size_t& value) -> Status {
    SERIN_TRY(const int64_t given, node.integer(key, least, most, static_cast<int64_t>(value)));
    value = static_cast<size_t>(given);
    return {};
  };
  SERIN_CHECK(size("request_line_bytes", 256, 1 << 20, limits.request_line_bytes));
  SERIN_CHECK(size("header_bytes", 1024, 1 << 20, limits.header_bytes));
  SERIN_CHECK(size("header_count", 8, 10'000, limits.header_count));
  SERIN_CHECK(size("body_bytes", 1, kLargestBody, limits.body_bytes));
  SERIN_CHECK(size("chunks", 1, 10'000'000, limits.chunks));
  SERIN_CHECK(size("streams", 1, 10'000, limits.streams));
  SERIN_CHECK(size("connections", 1, 1'000'000, limits.connections));
  SERIN_TRY(limits.header_timeout, read_milliseconds(node, "header_timeout", limits.header_timeout));
  SERIN_TRY(limits.body_timeout, read_milliseconds(node, "body_timeout", limits.body_timeout));
  SERIN_TRY(limits.silence_timeout, read_milliseconds(node, "silence_timeout", limits.silence_timeout));
  SERIN_TRY(limits.idle_timeout, read_milliseconds(node, "idle_timeout", limits.idle_timeout));
  SERIN_TRY(limits.write_timeout, read_milliseconds(node, "write_timeout", limits.write_timeout));
  return limits;
}

Result<uint16_t> read_grpc_port(const Node& owner) {
  SERIN_TRY(const int64_t port, owner.integer("grpc_port", 1, 65535, 0));
  return static_cast<uint16_t>(port);
}

Result<Endpoint> read_url(const Node& node, uint16_t grpc_port) {
  SERIN_TRY(std::string text, node.text());
  auto endpoint = parse_endpoint(std::move(text), grpc_port);
  if (!endpoint) return node.error(endpoint.error().message);
  return endpoint;
}

Result<std::vector<Endpoint>> read_list(const Node& list) {
  const auto items = list.items();
  if (items.empty() || items.size() > kMostEndpoints)
    return list.error(fmt::format("must be a list of 1 to {} entries such as {{url: \"http://127.0.0.1:8000\"}}", kMostEndpoints));
  std::vector<Endpoint> endpoints;
  std::set<std::string> seen;
  for (const Node& item : items) {
    SERIN_CHECK(item.allow_only({"url", "grpc_port"}));
    SERIN_TRY(const Node url, item.at("url"));
    SERIN_TRY(const uint16_t grpc_port, read_grpc_port(item));
    SERIN_TRY(Endpoint endpoint, read_url(url, grpc_port));
    if (!seen.insert(endpoint.url).second) return item.error(fmt::format("endpoint {} given twice", endpoint.url));
    endpoints.push_back(std::move(endpoint));
  }
  return endpoints;
}

/// {file: PATH}, {dns: URL} or {kubernetes: {...}}
Result<EndpointSource> read_source(const Node& node) {
  SERIN_CHECK(node.allow_only({"file", "dns", "kubernetes", "interval", "grpc_port"}));
  const auto file = node.find("file"), dns = node.find("dns"), slices = node.find("kubernetes");
  if (int{file.has_value()} + int{dns.has_value()} + int{slices.has_value()} != 1)
    return node.error("must be a list, or have one of file (a path), dns (http://HOST:PORT[/PATH]) and kubernetes (a map)");
  EndpointSource source;
  if (slices) {
    if (const auto interval = node.find("interval")) return interval->error("belongs to file or dns; kubernetes tells each change at once");
    SERIN_TRY(source.slices, read_slices(*slices, node.find("grpc_port")));
    return source;
  }
  SERIN_TRY(source.grpc_port, read_grpc_port(node));
  if (dns) {
    SERIN_TRY(source.name, read_url(*dns, source.grpc_port));
  } else {
    SERIN_TRY(source.file, file->text());
    if (source.file.empty()) return file->error("must be the path of a file");
  }
  SERIN_TRY(source.interval, read_milliseconds(node, "interval", dns ? kAskName : kAskFile, milliseconds(10)));
  return source;
}

Status read_endpoints(const Node& owner, VersionConfig& version) {
  SERIN_TRY(const Node node, owner.at("endpoints"));
  if (!node.is_map()) {
    SERIN_TRY(version.endpoints, read_list(node));
    return {};
  }
  SERIN_TRY(version.source, read_source(node));
  if (version.source.is_remote()) return {};
  const auto text = read_endpoint_file(version.source.file);
  if (!text) return node.find("file")->error(text.error().message);
  auto endpoints = parse_endpoint_list(*text, version.source.file, version.source.grpc_port);
  if (!endpoints) return node.find("file")->error(endpoints.error().message);
  version.endpoints = std::move(*endpoints);
  return {};
}

Result<Health> read_health(const Node& node) {
  SERIN_CHECK(node.allow_only({"path", "any_status", "interval", "timeout", "unhealthy", "healthy"}));
  Health health;
  SERIN_TRY(health.path, node.text("path", ""));
  if (const auto path = node.find("path"); path && !health.path.starts_with('/')) return path->error("must begin with '/'");
  SERIN_TRY(health.any_status, node.boolean("any_status", false));
  SERIN_TRY(health.interval, read_milliseconds(node, "interval", health.interval, milliseconds(10)));
  SERIN_TRY(health.timeout, read_milliseconds(node, "timeout", health.timeout));
  SERIN_TRY(health.unhealthy, node.integer("unhealthy", 1, 100, health.unhealthy));
  SERIN_TRY(health.healthy, node.integer("healthy", 1, 100, health.healthy));
  return health;
}

Result<Ejection> read_ejection(const Node& node) {
  SERIN_CHECK(node.allow_only({"failures", "time"}));
  Ejection ejection;
  SERIN_TRY(ejection.failures, node.integer("failures", 0, 1000, ejection.failures));
  SERIN_TRY(ejection.time, read_milliseconds(node, "time", ejection.time));
  return ejection;
}

Result<VersionConfig> read_version(const Node& node) {
  SERIN_CHECK(node.allow_only({"name", "endpoints", "tls", "health", "ejection", "max_in_flight", "slow_start"}));
  VersionConfig version;
  SERIN_TRY(version.name, read_name(node));
  SERIN_CHECK(read_endpoints(node, version));
  const bool later = !version.source.file.empty();  // what the file will name is not known yet
  const bool secure = std::ranges::any_of(version.endpoints, &Endpoint::secure) || version.source.secure();
  SERIN_TRY(version.tls, read_client_tls(node, secure || later));
  if (const auto health = node.find("health")) {
    SERIN_TRY(version.health, read_health(*health));
  }
  if (const auto ejection = node.find("ejection")) {
    SERIN_TRY(version.ejection, read_ejection(*ejection));
  }
  SERIN_TRY(version.max_in_flight, node.integer("max_in_flight", 1, 1'000'000, version.max_in_flight));
  SERIN_TRY(version.slow_start, read_milliseconds(node, "slow_start", version.slow_start, milliseconds(0)));
  return version;
}

Status read_versions(const Node& node, ServiceConfig& service) {
  SERIN_TRY(const Node list, node.at("versions"));
  const auto items = list.items();
  if (items.empty() || items.size() > kMostVersions) return list.error(fmt::format("must be a list of 1 to {} versions", kMostVersions));
  for (const Node& item : items) {
    SERIN_TRY(VersionConfig version, read_version(item));
    if (std::ranges::find(service.versions, version.name, &VersionConfig::name) != service.versions.end())
      return item.error(fmt::format("version '{}' of service '{}' given twice", version.name, service.name));
    service.versions.push_back(std::move(version));
  }
  return {};
}

std::string names_of(const std::vector<VersionConfig>& versions) {
  std::string names;
  for (const VersionConfig& version : versions) names += (names.empty() ? "" : ", ") + version.name;
  return names;
}

Result<ServiceConfig> read_service(const Node& node) {
  if (const auto sticky = node.find("sticky")) return sticky->error("belongs to a rollout: canary: {version: 2, sticky: {header: x-user}}");
  SERIN_CHECK(node.allow_only({"name", "initial_stable", "force_header", "versions", "guard", "request_timeout", "recording", "rollouts",
                               "split", "outcomes", "http_route"}));
  ServiceConfig service;
  SERIN_TRY(service.name, read_name(node));
  if (service.name.find(kTrackMark) != std::string::npos)
    return node.find("name")->error(fmt::format("must not contain '{}', which marks the further rollouts of a service", kTrackMark));
  SERIN_CHECK(read_versions(node, service));
  SERIN_TRY(const Node stable, node.at("initial_stable"));
  SERIN_TRY(service.initial_stable, stable.text());
  if (std::ranges::find(service.versions, service.initial_stable, &VersionConfig::name) == service.versions.end())
    return stable.error(
        fmt::format("'{}' is no version of service '{}'; allowed: {}", service.initial_stable, service.name, names_of(service.versions)));
  SERIN_TRY(service.force_header, node.boolean("force_header", service.force_header));
  SERIN_TRY(service.request_timeout, read_milliseconds(node, "request_timeout", service.request_timeout));
  if (const auto guard = node.find("guard")) {
    SERIN_TRY(service.guard, rollout::parse_guard(*guard));
  }
  if (const auto recording = node.find("recording")) {
    SERIN_TRY(service.recording, read_recording(*recording));
  }
  SERIN_TRY(service.tracks, node.integer("rollouts", 1, kMostTracks, 1));
  if (const auto split = node.find("split")) {
    if (service.tracks > 1) return split->error("a service with a split has no rollouts: leave `rollouts` out");
    SERIN_TRY(service.split, read_split(*split, service));
  }
  if (const auto outcomes = node.find("outcomes")) {
    SERIN_TRY(service.outcomes, read_outcomes(*outcomes, service.versions));
  }
  if (const auto route = node.find("http_route")) {
    SERIN_TRY(service.http_route, read_http_route(*route, service));
  }
  return service;
}

ServiceConfig track_of(const ServiceConfig& first, int number) {
  ServiceConfig track = first;
  track.name = fmt::format("{}{}{}", first.name, kTrackMark, number);
  track.track_of = first.name;
  return track;
}

Status read_services(const Node& root, RouterConfig& config) {
  SERIN_TRY(const Node list, root.at("services"));
  const auto items = list.items();
  if (items.empty()) return list.error("must be a list of at least one service");
  std::vector<ServiceConfig> tracks;
  for (const Node& item : items) {
    SERIN_TRY(ServiceConfig service, read_service(item));
    if (std::ranges::find(config.services, service.name, &ServiceConfig::name) != config.services.end())
      return item.error(fmt::format("service '{}' given twice", service.name));
    const auto same_file = [&](const ServiceConfig& other) {
      return service.recording && other.recording && !service.recording->file.empty() && service.recording->file == other.recording->file;
    };
    if (std::ranges::any_of(config.services, same_file))
      return item.error(fmt::format("recording: another service has the file '{}' already", service.recording->file));
    const ServiceConfig& first = config.services.emplace_back(std::move(service));
    for (int track = 2; track <= first.tracks; ++track) tracks.push_back(track_of(first, track));
  }
  std::ranges::move(tracks, std::back_inserter(config.services));
  return {};
}

}  // namespace

Result<RouterConfig> load_config(const std::string& path, const std::string& store) {
  SERIN_TRY(const Node root, Node::load(path));
  return read_config(root, store);
}

Result<RouterConfig> read_config(const Node& root, const std::string& store) {
  SERIN_CHECK(root.allow_only({"listen", "tls", "admin", "store", "replicas", "kubernetes", "external_metrics", "external_scaler",
                               "io_threads", "limits", "services", "webhooks", "prometheus"}));
  RouterConfig config;
  if (const auto listen = root.find("listen")) {
    SERIN_TRY(config.listen, read_listen(*listen));
  }
  if (const auto tls = root.find("tls")) {
    SERIN_TRY(config.tls, read_listener_tls(*tls));
  }
  if (const auto admin = root.find("admin")) {
    SERIN_TRY(config.admin, read_admin(*admin));
    if (const Listen& other = config.admin.listen; other.port != 0 && other == config.listen)
      return admin->error(fmt::format("{}:{} is already the address of 'listen'", other.address, other.port));
  }
  if (const auto kubernetes = root.find("kubernetes")) {
    SERIN_TRY(config.kubernetes, read_kubernetes(*kubernetes));
  }
  SERIN_CHECK(read_store(root, store, config));
  if (const auto metrics = root.find("external_metrics")) {
    SERIN_TRY(config.external_metrics, read_external_metrics(*metrics));
  }
  if (const auto scaler = root.find("external_scaler")) {
    SERIN_TRY(config.external_scaler, read_external_scaler(*scaler));
  }
  SERIN_TRY(config.io_threads, root.integer("io_threads", 1, 64, config.io_threads));
  if (const auto limits = root.find("limits")) {
    SERIN_TRY(config.limits, read_limits(*limits));
  }
  SERIN_CHECK(read_services(root, config));
  if (const auto webhooks = root.find("webhooks")) SERIN_CHECK(read_webhooks(*webhooks, config));
  if (const auto prometheus = root.find("prometheus")) {
    SERIN_CHECK(prometheus->allow_only({"tls"}));
    SERIN_TRY(config.prometheus_tls, read_client_tls(*prometheus, /*secure=*/true));
  }
  return config;
}

}  // namespace serin::router
