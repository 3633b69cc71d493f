// config.h: The contents of router.yaml, read once at start (read_config.h).
//
//   listen: 127.0.0.1:8080                       # data path
//   admin: 127.0.0.1:8081                        # admin API, metrics
//   store: serin-router.db                       # SQLite; the weights page is next to it. Or {file: serin-router.db, etcd: {...}}
//   services:
//     - name: digits
//       initial_stable: "1"                      # read on the very first start; afterwards the store owns stable, weights and phase
//       force_header: true                       # x-serin-force-version is honoured; false (default): stripped
//       versions:
//         - name: "1"
//           endpoints: [{url: "http://127.0.0.1:8000/v2/models/digits/versions/1"}]
//           # {url: "http://...:8000", grpc_port: 8001} also answers gRPC, {url: "grpc://127.0.0.1:8001"} answers only gRPC
//           # or {file: endpoints.txt}, one URL a line, watched; or {dns: "http://digits-2:8000"}, every address of the name;
//           # or {kubernetes: {service: digits-2, port: http}}, every ready address of its EndpointSlices
//           health: {path: /v2/models/digits/versions/1/ready, interval: 1s, timeout: 1s, unhealthy: 2, healthy: 1}
//       guard: {latency: {floor: 5ms}}           # defaults for rollouts of this service
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/config/split.h"
#include "router/kubernetes/endpoint_slices.h"
#include "router/rollout/spec.h"
#include "runtime/net/http.h"
#include "runtime/net/tls.h"

namespace serin::router {

struct Listen {
  std::string address = "127.0.0.1";
  uint16_t port = 0;

  bool is_any() const { return address == "0.0.0.0" || address == "::"; }
  bool is_loopback() const { return address == "::1" || address == "localhost" || address.starts_with("127."); }
  friend bool operator==(const Listen&, const Listen&) = default;
};

/// Access to the admin API, and its address.
struct AdminConfig {
  Listen listen{"127.0.0.1", 8081};
  /// A file (net::Tokens). Empty: every client that reaches the port (with TLS: and is accepted) may do everything.
  std::string tokens;
  std::shared_ptr<net::TlsContext> tls;  ///< null: without TLS
  int rate = 200;                        ///< requests a second for each caller, bursts of twice as many; 0: no limit
};

/// If an endpoint's URL has a path, the path replaces the prefix /v2/models/<service>[/versions/<v>] of the client's request. It also names
/// the model and version in gRPC calls.
struct Endpoint {
  std::string url;
  net::Origin origin;
  bool http = true;                 ///< it answers HTTP/1.1 at this URL; false: the URL is grpc://
  std::optional<net::Origin> grpc;  ///< the address that answers gRPC
  std::string path;                 ///< without trailing slash; empty: the client's path is kept
  std::string server_name;          ///< the resolved name that its certificate must have, if that is not the origin's host
  bool secure() const { return origin.secure; }
};

struct Health {
  /// Empty: the protocol's default: <endpoint path>/ready, /v1/models/<model>, or /v2/health/ready if the URL has no path.
  std::string path;
  bool any_status = false;  ///< an endpoint that answers at all is healthy: for servers without such a path
  std::chrono::milliseconds interval{1000}, timeout{1000};
  int unhealthy = 2;  ///< failures in a row until an endpoint is excluded
  int healthy = 1;    ///< successes in a row until it is included again
};

/// An endpoint with `failures` failures in a row is excluded for a while. Each further exclusion lasts twice as long.
struct Ejection {
  int failures = 5;  ///< 0: never
  std::chrono::milliseconds time{5000};
  int longest = 12;  ///< multiples of `time`
};

/// EndpointSlices of Kubernetes, and what an endpoint at one of their addresses is like.
struct SliceSource {
  kubernetes::SliceSelection selection;
  Endpoint pattern;  ///< without host and ports
};

/// The source of a version's endpoints, if it is not router.yaml itself: one of `file`, `name` and `slices`.
struct EndpointSource {
  std::string file;                   ///< one URL on each line
  std::optional<Endpoint> name;       ///< its host is resolved: every address is an endpoint
  std::optional<SliceSource> slices;  ///< followed
  uint16_t grpc_port = 0;             ///< for the endpoints in `file`
  std::chrono::milliseconds interval{0};

  bool changes() const { return !file.empty() || is_remote(); }
  /// Nothing is known before something else has answered.
  bool is_remote() const { return name || slices; }
  bool secure() const { return (name && name->secure()) || (slices && slices->pattern.secure()); }
};

struct VersionConfig {
  std::string name;
  std::vector<Endpoint> endpoints;  ///< at start; empty while they are unknown
  EndpointSource source;
  std::shared_ptr<net::TlsContext> tls;  ///< for secure endpoints; null: none is allowed
  Health health;
  Ejection ejection;
  int64_t max_in_flight = 1024;             ///< for each endpoint; if all have reached it, requests are refused
  std::chrono::milliseconds slow_start{0};  ///< a recovered endpoint reaches its full share over this time
};

/// The number of endpoints of a version at present.
struct EndpointCount {
  size_t all = 0, healthy = 0;
};

/// Requests that are kept to be sent to a canary later (recording/recorder.h).
struct RecordingConfig {
  size_t requests = 1000, bytes = size_t{64} << 20;  ///< at most
  std::chrono::hours keep{24};                       ///< at most so long
  std::vector<std::string> headers;                  ///< kept besides those that say what the body is
  std::vector<std::string> redact;                   ///< places of the JSON body (RFC 6901) whose values are replaced by empty ones
  std::string file;                                  ///< empty: in memory only
  std::array<unsigned char, 32> key{};               ///< that encrypts the file
  bool operator==(const RecordingConfig&) const = default;
};

/// Several rollouts of one service run on tracks named digits, digits~2, digits~3. The first is the service itself, and owns the stable
/// version. Each is a ServiceConfig with the same versions, so that it has its own state, history and verdict.
inline constexpr int kMostTracks = 8;
inline constexpr char kTrackMark = '~';  ///< not permitted in the name of a service

/// A fixed division of the requests among versions, without a rollout and without a judge.
struct PlainSplit {
  std::vector<uint32_t> ppm;  ///< by version; the sum is 1,000,000
  rollout::Sticky sticky;
};

/// Labels that are reported later, and the answers that they are compared with (outcomes/predictions.h).
struct LabelConfig {
  /// How the class of a row is taken from the output. A text is its own class.
  enum class Class : uint8_t { kArgmax, kValue, kThreshold } take = Class::kArgmax;
  std::string output;                              ///< empty: the first one
  double threshold = 0;                            ///< from it on a number is class 1, and below class 0
  std::vector<std::string> names;                  ///< of the classes, from 0 on
  size_t requests = 100'000, bytes = 64ULL << 20;  ///< kept at most
  std::chrono::nanoseconds keep = std::chrono::hours(24);
  bool operator==(const LabelConfig&) const = default;
};

/// A number that is reported from outside for requests that were drawn (outcomes/outcomes.h).
struct MetricConfig {
  std::string name;
  bool higher_is_better = true;
  double least = 0, most = 1;    ///< its range
  double confidence = 0.95;      ///< with which its intervals hold, all of them together and at all times
  std::optional<double> margin;  ///< a smaller difference does not matter
  std::optional<LabelConfig> labels;
  bool operator==(const MetricConfig&) const = default;
};

/// An HTTPRoute of the Gateway API that divides traffic by the shares of versions.
struct HttpRouteConfig {
  std::string name, name_space;       ///< the namespace empty: that of the router
  std::vector<std::string> backends;  ///< one for each version, in their order
  bool operator==(const HttpRouteConfig&) const = default;
};

struct ServiceConfig {
  std::string name;
  std::string initial_stable;
  int tracks = 1;        ///< rollouts that may run at once
  std::string track_of;  ///< the service; empty: it is the service itself, and its first track
  bool force_header = false;
  std::vector<VersionConfig> versions;  ///< at most 63
  std::optional<PlainSplit> split;      ///< then there are no rollouts
  rollout::Guard guard;
  std::optional<RecordingConfig> recording;
  std::vector<MetricConfig> outcomes;
  std::optional<HttpRouteConfig> http_route;
  rollout::Gates gates;                               ///< the gates that a webhook opens
  std::chrono::milliseconds request_timeout{30'000};  ///< for one attempt, unless the client asks for less
};

/// An external receiver that is notified of events (kEvent) or asked before an action.
struct WebhookConfig {
  enum class Type : uint8_t { kEvent, kConfirmRollout, kConfirmIncrease, kConfirmPromotion, kRollback } type = Type::kEvent;
  std::string name;
  net::Origin origin;
  std::string target = "/";              ///< path and query of its URL
  std::shared_ptr<net::TlsContext> tls;  ///< if it is secure
  std::string secret;                    ///< a file with the signing keys; empty: not signed
  std::vector<std::string> events;       ///< for kEvent; empty: all
  std::vector<std::string> services;     ///< empty: all
  std::chrono::milliseconds timeout{5000};
  std::chrono::milliseconds interval{10'000};  ///< between two questions
};
std::string_view webhook_type_name(WebhookConfig::Type type);  ///< "confirm-promotion"

struct EtcdConfig {
  std::vector<net::Origin> endpoints;
  std::string prefix = "/serin";
  std::shared_ptr<net::TlsContext> tls;  ///< if one of them is secure
  std::string user, password_file;
  std::chrono::milliseconds timeout{300};  ///< for one attempt at one endpoint
};

/// The API of Kubernetes as it is reached from a pod, or at `server`.
struct KubernetesConfig {
  std::optional<net::Origin> server;
  std::string name_space;              ///< empty: the pod's
  std::string zone;                    ///< of this router; empty: the variable NODE_ZONE
  kubernetes::Names node_taints;       ///< keys of taints of nodes that are about to end; empty: nodes are not looked at
  std::string group = "serin-router";  ///< of routers that share rollouts
  std::string token_file;
  std::shared_ptr<net::TlsContext> tls;
  std::chrono::milliseconds timeout{2000};  ///< for one request
};

/// Settings of routers that share their rollouts through one of two stores.
struct ReplicasConfig {
  int max = 0;       ///< the maximum number of routers: alpha is divided by it
  Listen listen;     ///< the address at which the other routers reach this one
  std::string name;  ///< its name among them; empty: the pod's with Kubernetes, else its listening address
  std::optional<EtcdConfig> etcd;
  std::optional<KubernetesConfig> kubernetes;
};

/// The API external.metrics.k8s.io, for autoscalers of Kubernetes.
struct ExternalMetricsConfig {
  Listen listen;
  std::shared_ptr<net::TlsContext> tls;  ///< always: the API server speaks nothing else
};

/// The protocol of KEDA's external scalers.
struct ExternalScalerConfig {
  Listen listen;
  std::shared_ptr<net::TlsContext> tls;  ///< null: without TLS
};

struct RouterConfig {
  Listen listen{"127.0.0.1", 8080};
  std::shared_ptr<net::TlsContext> tls;  ///< for `listen`; null: without TLS
  AdminConfig admin;
  std::string store = "serin-router.db";
  KubernetesConfig kubernetes;
  std::optional<ReplicasConfig> replicas;
  std::optional<ExternalMetricsConfig> external_metrics;
  std::optional<ExternalScalerConfig> external_scaler;
  int io_threads = 1;
  net::Limits limits;
  std::vector<ServiceConfig> services;  ///< of the file, in its order; after them the further tracks
  std::vector<WebhookConfig> webhooks;
  std::shared_ptr<net::TlsContext> prometheus_tls;  ///< for queries of guards with an https address
};

/// The service that a track belongs to: "digits" of "digits~2" and of "digits".
inline std::string_view service_of(std::string_view track) { return track.substr(0, track.find(kTrackMark)); }

/// Index of the version with that name; Split::kNoCanary if there is none.
inline uint32_t version_index(const ServiceConfig& config, std::string_view name) {
  for (size_t i = 0; i < config.versions.size(); ++i)
    if (config.versions[i].name == name) return static_cast<uint32_t>(i);
  return Split::kNoCanary;
}

}  // namespace serin::router
