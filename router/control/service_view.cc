// service_view.cc: a service as people, metrics and the data path see it: shares, latencies, the current or last rollout, why it was decided.

#include <algorithm>

#include "router/config/split.h"
#include "router/control/service_control.h"
#include "router/control/wall_clock.h"
#include "router/rollout/draw.h"
#include "router/store/verdict_json.h"

namespace serin::router {

uint32_t ServiceControl::share_of(size_t version) const {
  const Split now = split();
  if (version == now.canary) return now.weight_ppm;
  const auto asked = spec_.get();
  const uint32_t baseline = now.canary == Split::kNoCanary ? 0 : baseline_weight(*asked, now.weight_ppm);
  if (version == now.stable) return rollout::kAll - now.weight_ppm - baseline;
  return baseline > 0 && config_.versions[version].name == asked->baseline ? baseline : 0;
}

void ServiceControl::set_pace() {
  constexpr uint64_t kEnough = 100;
  const LatencyHistogram known = latencies_.snapshot();
  const auto hedge = spec_.get()->shield.hedge;
  const bool enough = known.count() >= kEnough;
  p99_ = enough ? known.quantile(0.99) : std::chrono::nanoseconds(0);
  hedge_after_ = enough && hedge ? std::max(known.quantile(*hedge), known.quantile(0.5) * 3 / 2) : std::chrono::nanoseconds(0);
}

/// What is shown of the answers, and of the rollout's way until a minute after its verdict: then it is history.
void ServiceControl::keep_watch(Time now) {
  for (size_t arm = 0; arm < recent_.size(); ++arm) {
    recent_[arm].turn(now);
    recent_summary_[arm] = recent_[arm].summary(now);
  }
  if (!rollout_) pace_.clear();
  if (rollout_) watch_until_ = now + std::chrono::minutes(1);
  if (now >= watch_until_) return;
  const rollout::Report report = rollout_ ? rollout_->report() : last_->report;
  if (rollout_) pace_.add(report.evidence, now);
  const Split applied = split();
  timeline_.add(
      {.weight_ppm = applied.weight_ppm, .shadow_ppm = applied.shadow_ppm, .stable = recent_summary_[0], .canary = recent_summary_[1]},
      report.evidence, now);
}

ServiceStatus ServiceControl::status(Time now) const {
  const std::lock_guard lock(mutex_);
  ServiceStatus status{.service = config_.name,
                       .stable = stable_,
                       .epoch = epoch_,
                       .recent_stable = recent_summary_[0],
                       .recent_canary = recent_summary_[1]};
  if (!last_) return status;
  if (warm_) status.warm = ServiceStatus::Warm{warm_->version, std::chrono::duration<double>(warm_->until - now).count()};
  store::RolloutRecord current = record(now);
  status.rollout = std::move(current.report);
  status.rollout_steps = steps_;
  if (rollout_) status.next_verdict = pace_.next();
  status.rollout_seconds = current.seconds;
  return status;
}

std::optional<std::string> ServiceControl::explain(const std::string& id, Time now) const {
  const std::lock_guard lock(mutex_);
  if (!last_) return std::nullopt;
  const store::RolloutRecord current = record(now);
  if (id != config_.name && id != current.report.state.id) return std::nullopt;
  if (rollout_) return store::verdict_json(current, rollout_->explain(), wall_milliseconds());
  return verdict_.empty() ? std::nullopt : std::optional(verdict_);
}

std::optional<std::string> ServiceControl::outcome(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  if (!last_ || last_->report.state.id != id) return std::nullopt;
  return store::verdict_json(*last_, {}, 0);
}

Timeline ServiceControl::timeline() const {
  const std::lock_guard lock(mutex_);
  return timeline_;
}

void ServiceControl::set_endpoint_count(size_t version, EndpointCount count) {
  const std::lock_guard lock(mutex_);
  if (version < endpoints_.size()) endpoints_[version] = count;
}

std::optional<EndpointCount> ServiceControl::endpoint_count(size_t version) const {
  const std::lock_guard lock(mutex_);
  return version < endpoints_.size() ? endpoints_[version] : std::nullopt;
}

void ServiceControl::update_metrics() {
  const std::lock_guard lock(mutex_);
  if (!last_) return;
  const rollout::Report report = rollout_ ? rollout_->report() : last_->report;
  service_metrics_.show(report, steps_);
}

}  // namespace serin::router
