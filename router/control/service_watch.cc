#include "router/control/service_watch.h"

#include <utility>

namespace serin::router {

void ServiceWatch::count_verdict(const rollout::State& state) {
  metrics_.count_verdict(state.phase == rollout::Phase::kSucceeded ? "promoted" : "rolled_back", state.cause);
}

void ServiceWatch::begin(Time now) {
  metrics_.forget();
  timeline_.clear(now);
  pace_.clear();
}

void ServiceWatch::go_on(const Recent& recent, Timeline timeline) {
  recent_ = recent;
  timeline_ = std::move(timeline);
  pace_.clear();
}

bool ServiceWatch::is_due(Time now) {
  if (now < next_look_) return false;
  next_look_ = now + std::chrono::seconds(1);
  return true;
}

void ServiceWatch::look(const ServiceState& state, const Split& applied, Time now) {
  for (size_t arm = 0; arm < recent_.size(); ++arm) {
    recent_[arm].turn(now);
    recent_summary_[arm] = recent_[arm].summary(now);
  }
  if (!state.rollout) pace_.clear();
  if (state.rollout) watch_until_ = now + std::chrono::minutes(1);
  if (now >= watch_until_) return;
  const rollout::Report report = state.rollout ? state.rollout->report() : state.last->report;
  if (state.rollout) pace_.add(report.evidence, now);
  timeline_.add(
      {.weight_ppm = applied.weight_ppm, .shadow_ppm = applied.shadow_ppm, .stable = recent_summary_[0], .canary = recent_summary_[1]},
      report.evidence, now);
}

ServiceStatus ServiceWatch::status(const ServiceState& state, Time now) const {
  ServiceStatus status{.service = state.config.name,
                       .stable = state.stable,
                       .epoch = state.epoch,
                       .recent_stable = recent_summary_[0],
                       .recent_canary = recent_summary_[1]};
  if (!state.last) return status;
  if (state.warm) status.warm = ServiceStatus::Warm{state.warm->version, std::chrono::duration<double>(state.warm->until - now).count()};
  store::RolloutRecord current = state.record(now);
  status.rollout = std::move(current.report);
  status.rollout_steps = state.steps;
  if (state.rollout) status.next_verdict = pace_.next();
  status.rollout_seconds = current.seconds;
  return status;
}

void ServiceWatch::show_metrics(const ServiceState& state) {
  if (!state.last) return;
  metrics_.show(state.rollout ? state.rollout->report() : state.last->report, state.steps);
}

}  // namespace serin::router
