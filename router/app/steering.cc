#include "router/app/steering.h"

#include <algorithm>
#include <utility>

#include "router/config/config_kubernetes.h"
#include "router/control/services.h"

namespace serin::router {
namespace {

rollout::Time now() { return rollout::Time::clock::now(); }

}  // namespace

Result<std::unique_ptr<Steering>> Steering::open(const RouterConfig& config, metrics::Registry& metrics, AuditStream* audit,
                                                 LearnedServices* learned) {
  std::unique_ptr<Steering> steering(new Steering(config, audit));
  SERIN_CHECK(steering->begin(metrics, learned));
  return steering;
}

Status Steering::begin(metrics::Registry& metrics, LearnedServices* learned) {
  LearnedServices nothing;
  LearnedServices& known = learned == nullptr ? nothing : *learned;
  SERIN_TRY(controller_, Controller::open(config_, metrics, known));
  const auto& services = controller_->services();
  if (config_.replicas) {
    SERIN_TRY(replicas_,
              Replicas::start(*config_.replicas, *controller_->shared_store(), services, metrics, [this] { controller_->save_soon(); }));
  }
  controller_->begin(std::exchange(known, {}), this);
  prometheus_ = std::make_unique<PrometheusWatch>(
      [this] { return questions(); },
      [this, &services](const PrometheusWatch::Question& question, std::optional<double> value) {
        if (services.all[question.service]->observe_sample(question.rollout, question.guard, value, now())) controller_->changed();
      },
      config_.prometheus_tls);
  webhooks_ = std::make_unique<Webhooks>(config_.webhooks, controller_->store(), gatekeeper(), metrics);
  webhooks_ready_ = true;
  if (config_.replicas && config_.replicas->kubernetes) {
    SERIN_TRY(const kubernetes::Cluster cluster, cluster_of(*config_.replicas->kubernetes));
    objects_ = std::make_unique<RolloutObjects>(cluster, config_.replicas->kubernetes->group, config_, *controller_);
    objects_ready_ = true;
  }
  if (std::ranges::any_of(config_.services, [](const ServiceConfig& service) { return service.http_route.has_value(); })) {
    SERIN_TRY(const kubernetes::Cluster cluster, cluster_of(config_.kubernetes));
    http_routes_ = std::make_unique<HttpRoutes>(cluster, config_, *controller_, metrics);
    http_routes_ready_ = true;
  }
  return {};
}

void Steering::retire() {
  if (!controller_) return;
  if (objects_) objects_->end();
  if (http_routes_) http_routes_->end();
  prometheus_.reset();
  webhooks_ready_ = false;
  controller_->stop();
  webhooks_.reset();
  objects_.reset();
  http_routes_.reset();
  replicas_.reset();  // last: what was left to be saved was the leader's to save
  controller_->retire();
}

void Steering::advertise(std::string admin) {
  if (replicas_) replicas_->advertise(std::move(admin));
}

std::vector<VersionLoad> Steering::whole_load(std::vector<VersionLoad> own) const {
  if (replicas_) return replicas_->with_load_of_others(own);
  return own;
}

void Steering::share_load(LoadSource source) {
  if (replicas_) replicas_->share_load(std::move(source));
}

void Steering::on_change() {
  if (replicas_) replicas_->tell_verdicts();
  if (http_routes_ready_) http_routes_->wake();
}

std::optional<ReplicasStatus> Steering::replicas() const { return replicas_ ? std::optional(replicas_->status()) : std::nullopt; }

void Steering::on_saved(bool wrote) {
  if (wrote && webhooks_ready_) webhooks_->wake();
  if (wrote && objects_ready_) objects_->wake();
  if (wrote && http_routes_ready_) http_routes_->wake();
  audit_behind_ = audit_behind_ || wrote;
  if (audit_ == nullptr || !audit_behind_) return;
  const auto told = audit_->follow(controller_->store());
  audit_behind_ = !told || !*told;
}

/// What people outside may open and end.
Gatekeeper Steering::gatekeeper() {
  const auto act_on = [this](const rollout::State& state, const auto& act) {
    if (ServiceControl* control = controller_->services().find(state.service); control != nullptr && act(*control)) controller_->changed();
  };
  return {.running =
              [this] {
                std::vector<rollout::State> running;
                for (const auto& service : controller_->services().all)
                  if (auto state = service->running_state()) running.push_back(*std::move(state));
                return running;
              },
          .confirm =
              [act_on](const rollout::State& state, const std::string& who) {
                act_on(state, [&](ServiceControl& control) { return control.confirm(state.id, state.cause, who, now()).has_value(); });
              },
          .roll_back =
              [act_on](const rollout::State& state, const std::string& who) {
                act_on(state, [&](ServiceControl& control) {
                  const CommandRequest request{.actor = who, .if_match = std::nullopt, .reason = "asked for by " + who};
                  const auto now_running = control.running_state();
                  return now_running && now_running->id == state.id && control.abort(request, now()).has_value();
                });
              }};
}

/// The queries of the rollouts under way.
std::vector<PrometheusWatch::Question> Steering::questions() const {
  std::vector<PrometheusWatch::Question> open;
  const auto& services = controller_->services().all;
  for (size_t service = 0; service < services.size(); ++service) {
    if (!services[service]->leads()) continue;  // one router asks
    const auto [rollout, spec] = services[service]->running_spec();
    for (size_t guard = 0; spec && guard < spec->guard.prometheus.size(); ++guard)
      open.push_back({rollout, service, guard, spec->guard.prometheus[guard]});
  }
  return open;
}

/// Each router judges the outcomes that are reported to it.
OutcomeWatch Steering::outcome_watch() {
  const auto& services = controller_->services().all;
  return {.questions =
              [&services] {
                std::vector<OutcomeQuestion> open;
                for (size_t service = 0; service < services.size(); ++service) {
                  const auto [rollout, spec] = services[service]->running_spec();
                  const ServiceConfig& config = services[service]->config();
                  for (size_t guard = 0; spec && guard < spec->guard.outcomes.size(); ++guard)
                    open.push_back({.service = config.track_of.empty() ? config.name : config.track_of,
                                    .metric = spec->guard.outcomes[guard].metric,
                                    .rollout = {.id = rollout,
                                                .stable = spec->stable,
                                                .canary = spec->canary,
                                                .margin = spec->guard.outcomes[guard].margin},
                                    .control = service,
                                    .guard = guard});
                }
                return open;
              },
          .answer =
              [this, &services](const OutcomeQuestion& question, const rollout::OutcomeEvidence& evidence) {
                if (services[question.control]->observe_outcomes(question.rollout.id, question.guard, evidence, now()))
                  controller_->changed();
              }};
}

}  // namespace serin::router
