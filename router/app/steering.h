// steering.h: The controller together with the rooms that observe it: other routers, webhooks, Prometheus queries and the audit stream.
//
//   SERIN_TRY(const auto steering, Steering::open(config, registry, &audit, &learned));
//   Proxy proxy(config, steering->controller(), ...);
//   steering->advertise(admin_url);                  // from now on this router is a member, and may lead
//
// The controller knows none of these rooms. They change services as answers do, each on its own threads.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "router/config/config.h"
#include "router/control/controller.h"
#include "router/control/observer.h"
#include "router/notify/audit_stream.h"
#include "router/notify/prometheus.h"
#include "router/notify/webhooks.h"
#include "router/objects/http_routes.h"
#include "router/objects/rollout_objects.h"
#include "router/outcomes/outcomes.h"
#include "router/replicas/replicas.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"

namespace serin::router {

class Steering final : private Observer {
 public:
  /// Errors: those of Controller::open and Replicas::start; then `learned` is left unchanged. `config` and `audit` must outlive this. `audit`
  /// receives every change once it is written; null: none.
  static Result<std::unique_ptr<Steering>> open(const RouterConfig& config, metrics::Registry& metrics, AuditStream* audit = nullptr,
                                                LearnedServices* learned = nullptr);
  ~Steering() { retire(); }
  Steering(const Steering&) = delete;
  Steering& operator=(const Steering&) = delete;

  Controller& controller() { return *controller_; }
  const Controller& controller() const { return *controller_; }
  /// If several routers share the rollouts: the URL of this one's admin API, known once it listens.
  void advertise(std::string admin);
  /// Of all routers: `own`, and what the others tell.
  std::vector<VersionLoad> whole_load(std::vector<VersionLoad> own) const;
  /// From now on the load that `source` reports goes to the other routers, if there are any.
  void share_load(LoadSource source);
  /// For guards that judge reported outcomes.
  OutcomeWatch outcome_watch();
  /// Controller::retire(), in an order in which no thread changes a service that is no longer saved.
  void retire();

 private:
  Steering(const RouterConfig& config, AuditStream* audit) : config_(config), audit_(audit) {}
  Status begin(metrics::Registry& metrics, LearnedServices* learned);
  Gatekeeper gatekeeper();
  std::vector<PrometheusWatch::Question> questions() const;

  // Observer
  void on_change() override;
  void on_command() override { prometheus_->look_again(); }
  void on_saved(bool wrote) override;
  std::optional<ReplicasStatus> replicas() const override;

  const RouterConfig& config_;
  AuditStream* const audit_;
  bool audit_behind_ = true;  // of the entries that the last run wrote, too; belongs to the controller's thread
  std::unique_ptr<Controller> controller_;
  std::unique_ptr<Replicas> replicas_;  // null: this router runs alone
  std::unique_ptr<PrometheusWatch> prometheus_;
  std::unique_ptr<RolloutObjects> objects_;  // null: rollouts are not in the Kubernetes API
  std::atomic<bool> objects_ready_{false};
  std::unique_ptr<HttpRoutes> http_routes_;  // null: no service has one
  std::atomic<bool> http_routes_ready_{false};
  std::unique_ptr<Webhooks> webhooks_;
  std::atomic<bool> webhooks_ready_{false};
};

}  // namespace serin::router
