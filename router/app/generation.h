// generation.h: runs the router by one version of router.yaml: controller, proxy and admin API, and their two servers.
//
// A generation is replaced as a whole. Its successor is in this process (SIGHUP) or in the next one (--take-over), and accepts from the
// same listening sockets:
//
//   auto learned = old.hand_over_store();                      // admin requests wait in the backlog, answers are no evidence, all is saved
//   auto next = Generation::start(config, loops, old.sockets(), &learned);
//   old.drain(30s);                                            // answers requests in progress; connections end after their next answer
//
// So at most one generation writes the store, and at least one routes.
#pragma once

#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "router/admin/access.h"
#include "router/admin/admin_api.h"
#include "router/app/handover.h"
#include "router/app/steering.h"
#include "router/kubernetes/slice_watch.h"
#include "router/notify/audit_stream.h"
#include "router/outcomes/outcomes.h"
#include "router/proxy/proxy.h"
#include "router/recording/recorder.h"
#include "router/scaling/external_metrics.h"
#include "router/scaling/external_scaler.h"
#include "runtime/base/metrics.h"
#include "runtime/base/process_metrics.h"
#include "runtime/net/loop.h"
#include "runtime/net/server.h"
#include "runtime/net/tls/tls_watch.h"

namespace serin::router {

/// The parts that outlive a generation.
struct RouterLoops {
  Recorders recorders;
  AllPredictions predictions;
  net::Loops data, admin;  ///< the admin API has its own thread: its answers wait for the disk, and the data path must not
};

class Generation {
 public:
  /// Listens at the addresses of `config`, on the `inherited` sockets that are bound to them. With inherited sockets, it listens only after
  /// every endpoint has had its health checked. It continues with the state in `learned`, and gives it back on failure. The error is
  /// kAlreadyExists if another process has the store or a port.
  static Result<std::unique_ptr<Generation>> start(const RouterConfig& config, RouterLoops& loops, ListeningSockets inherited = {},
                                                   LearnedServices* learned = nullptr);

  const RouterConfig& config() const { return config_; }
  metrics::Registry& registry() { return registry_; }
  const Controller& controller() const { return steering_->controller(); }
  std::string data_url() const;
  std::string admin_url() const;
  uint16_t data_port() const { return data_server_->port(); }
  uint16_t admin_port() const { return admin_port_; }
  /// Returns duplicates for a successor.
  ListeningSockets sockets() const;

  /// Tells a successor's versions the endpoints that are known here (proxy.h).
  void hand_endpoints_to(RouterConfig& next) const { proxy_->hand_endpoints_to(next); }
  void stop_being_ready();
  LearnedServices hand_over_store();
  /// Returns true if every request in progress was answered.
  bool drain(std::chrono::milliseconds deadline);

 private:
  Generation(const RouterConfig& config, RouterLoops& loops) : config_(config), loops_(loops) {}
  Status open(ListeningSockets inherited, LearnedServices* learned);
  Status open_for_autoscalers();
  void close_for_autoscalers();
  std::vector<VersionLoad> loads() const;
  void drain_admin(std::chrono::milliseconds deadline);

  // Declared in the order of dependence: each member may use those before it, and destruction runs in reverse order.
  const RouterConfig config_;
  RouterLoops& loops_;
  metrics::Registry registry_;
  const std::vector<std::shared_ptr<void>> process_metrics_ = metrics::export_process_metrics(registry_);
  std::unique_ptr<Access> access_;
  std::unique_ptr<net::TlsWatch> certificates_;
  AuditStream audit_{STDOUT_FILENO};
  std::unique_ptr<Steering> steering_;
  std::unique_ptr<Outcomes> outcomes_;
  std::unique_ptr<kubernetes::SliceWatch> slices_;  // null: no version is in EndpointSlices
  std::unique_ptr<Proxy> proxy_;
  std::unique_ptr<AdminApi> admin_;
  LoadSource own_load_;
  std::unique_ptr<ExternalMetrics> external_metrics_;
  std::unique_ptr<ExternalScaler> external_scaler_;
  std::unique_ptr<net::Server> data_server_, admin_server_;
  std::unique_ptr<net::Server> external_metrics_server_, external_scaler_server_;  // null without that API
  Descriptor admin_socket_;                                                        // kept for a successor after the admin server has ended
  uint16_t admin_port_ = 0;
};

}  // namespace serin::router
