// config.h: router.yaml, read once at start.
//
//   listen: 127.0.0.1:8080                       # data path
//   admin: 127.0.0.1:8081                        # admin API, metrics
//   store: serin-router.db                       # SQLite; the weights page lies beside it. Or {file: serin-router.db, etcd: {...}}
//   services:
//     - name: digits
//       initial_stable: "1"                      # read on the very first start; afterwards the store owns stable, weights and phase
//       force_header: true                       # x-serin-force-version is honoured; false (default): stripped
//       versions:
//         - name: "1"
//           endpoints: [{url: "http://127.0.0.1:8000/v2/models/digits/versions/1"}]
//           # {url: "http://...:8000", grpc_port: 8001} answers gRPC as well, {url: "grpc://127.0.0.1:8001"} nothing else
//           # or {file: endpoints.txt}, one url a line, watched; or {dns: "http://digits-2:8000"}, every address of the name
//           health: {path: /v2/models/digits/versions/1/ready, interval: 1s, timeout: 1s, unhealthy: 2, healthy: 1}
//       guard: {latency: {floor: 5ms}}           # defaults for rollouts of this service
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/rollout/spec.h"
#include "runtime/base/result.h"
#include "runtime/net/client.h"
#include "runtime/net/http.h"
#include "runtime/net/tls.h"

namespace serin::router {

struct Listen {
  std::string address = "127.0.0.1";
  uint16_t port = 0;

  bool is_loopback() const { return address == "::1" || address == "localhost" || address.starts_with("127."); }
  friend bool operator==(const Listen&, const Listen&) = default;
};

/// Who may use the admin API, and where it listens.
struct AdminConfig {
  Listen listen{"127.0.0.1", 8081};
  std::string tokens;  ///< a file (admin/tokens.h); empty: whoever reaches the port (with TLS: and is let in) may do everything
  std::shared_ptr<net::TlsContext> tls;  ///< null: in the clear
  int rate = 200;                        ///< requests a second of one caller, twice as many at once; 0: no limit
};

/// An endpoint's url may have a path; then it replaces the prefix /v2/models/<service>[/versions/<v>] of what the client asked for, and names the
/// model and version in calls of gRPC.
struct Endpoint {
  std::string url;
  net::Origin origin;
  bool http = true;                 ///< it answers HTTP/1.1 there; false: the url is grpc://
  std::optional<net::Origin> grpc;  ///< where it answers gRPC
  std::string path;                 ///< without trailing slash; empty: the client's path is kept
  std::string server_name;          ///< what its certificate must be for, where that is not the origin's host: the name that was resolved
  bool secure() const { return origin.secure; }
};

struct Health {
  std::string
      path;  ///< empty: what the protocol has: <endpoint path>/ready, /v1/models/<model>, or /v2/health/ready where the url has no path
  bool any_status = false;  ///< whoever answers is healthy: for servers that have no such path
  std::chrono::milliseconds interval{1000}, timeout{1000};
  int unhealthy = 2;  ///< failures in a row until an endpoint is left out
  int healthy = 1;    ///< successes in a row until it is back
};

/// An endpoint that fails so often in a row is left out for a while: twice as long the second time, and so on.
struct Ejection {
  int failures = 5;  ///< 0: never
  std::chrono::milliseconds time{5000};
  int longest = 12;  ///< times `time`
};

/// Where a version's endpoints come from, if not from router.yaml itself: `file` or `name`.
struct EndpointSource {
  std::string file;              ///< one url on each line
  std::optional<Endpoint> name;  ///< whose host is resolved: every address is an endpoint
  uint16_t grpc_port = 0;        ///< of those of `file`
  std::chrono::milliseconds interval{0};

  bool changes() const { return !file.empty() || name; }
};

struct VersionConfig {
  std::string name;
  std::vector<Endpoint> endpoints;  ///< at start; none yet where a name is to be resolved
  EndpointSource source;
  std::shared_ptr<net::TlsContext> tls;  ///< of endpoints that are secure; null: there can be none
  Health health;
  Ejection ejection;
  int64_t max_in_flight = 1024;             ///< of one endpoint; where all have as many, requests are refused
  std::chrono::milliseconds slow_start{0};  ///< over which an endpoint that has become healthy gets its full share
};

/// How many a version has just now.
struct EndpointCount {
  size_t all = 0, healthy = 0;
};

struct ServiceConfig {
  std::string name;
  std::string initial_stable;
  bool force_header = false;
  std::vector<VersionConfig> versions;  ///< at most 63
  rollout::Guard guard;
  rollout::Gates gates;                               ///< those that a webhook opens
  std::chrono::milliseconds request_timeout{30'000};  ///< for one attempt, where the client gives no smaller one
};

/// Somebody outside who is told what happens (kEvent), or asked before something does.
struct WebhookConfig {
  enum class Type : uint8_t { kEvent, kConfirmRollout, kConfirmIncrease, kConfirmPromotion, kRollback } type = Type::kEvent;
  std::string name;
  net::Origin origin;
  std::string target = "/";              ///< path and query of its url
  std::shared_ptr<net::TlsContext> tls;  ///< where it is secure
  std::string secret;                    ///< a file with the keys that sign; empty: not signed
  std::vector<std::string> events;       ///< of kEvent; empty: all
  std::vector<std::string> services;     ///< empty: all
  std::chrono::milliseconds timeout{5000};
  std::chrono::milliseconds interval{
      10'000};  ///< between two questions; and the first pause between two attempts to tell: 1 s, 2 s, 4 s ...
};
std::string_view webhook_type_name(WebhookConfig::Type type);  ///< "confirm-promotion"

/// Routers that share their rollouts through etcd.
struct ReplicasConfig {
  int max = 0;       ///< how many there may be: alpha is divided by it
  Listen listen;     ///< where the other routers reach this one
  std::string name;  ///< among them; empty: the address it listens at
  std::vector<net::Origin> etcd;
  std::string prefix = "/serin";
  std::shared_ptr<net::TlsContext> etcd_tls;  ///< where one of them is secure
  std::string user, password_file;
  std::chrono::milliseconds timeout{300};  ///< of one attempt at one endpoint
};

struct RouterConfig {
  Listen listen{"127.0.0.1", 8080};
  std::shared_ptr<net::TlsContext> tls;  ///< of `listen`; null: in the clear
  AdminConfig admin;
  std::string store = "serin-router.db";
  std::optional<ReplicasConfig> replicas;
  int io_threads = 1;
  net::Limits limits;
  std::vector<ServiceConfig> services;
  std::vector<WebhookConfig> webhooks;
  std::shared_ptr<net::TlsContext> prometheus_tls;  ///< for queries of guards whose address is https
};

/// Index of the version with that name; Split::kNoCanary where there is none.
uint32_t version_index(const ServiceConfig& config, std::string_view name);

/// `webhooks:` into config.webhooks and the gates of its services, which must have been read before.
Status read_webhooks(const config::Node& list, RouterConfig& config);

/// Errors name file, line, column and what is allowed; the file itself missing is kNotFound.
Result<RouterConfig> load_config(const std::string& path);
Result<RouterConfig> read_config(const config::Node& root);

}  // namespace serin::router
