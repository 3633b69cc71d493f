// service_control.cc: see the header for the one rule; the rest is bookkeeping around it.
//
// Two numbers called epoch: the rollout's own goes into the split word and comes back with every answer (an answer drawn under another one is
// no evidence); the service's rises with every command and verdict and is what If-Match compares. The service's is never the smaller one.

#include "router/control/service_control.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "router/config/split.h"
#include "router/control/wall_clock.h"
#include "router/rollout/draw.h"
#include "router/store/verdict_json.h"
#include "runtime/base/log.h"

namespace serin::router {
namespace {

using rollout::Phase;

constexpr uint32_t kWarmingPpm = 10'000;  // of requests copied to a version that is kept warm

/// The audit log's word for what the rollout did by itself.
std::string_view event_of(Phase before, Phase after, std::string_view cause) {
  if (before == after) return "weight";
  switch (after) {
    case Phase::kProgressing: return "resumed";
    case Phase::kPaused: return cause.starts_with("confirm-") ? "waiting" : "paused";
    case Phase::kInconclusive: return "inconclusive";
    case Phase::kPromoting: return "promoting";
    case Phase::kBaking: return "baking";
    case Phase::kSucceeded: return "promoted";
    case Phase::kRolledBack: return "rolled_back";
  }
  return "weight";
}

std::string detail_of(const rollout::State& state, const std::string& given_reason) {
  const bool names_cause = !rollout::is_over(state.phase) || state.reason.starts_with(state.cause);
  const std::string detail = names_cause ? state.reason : fmt::format("{}: {}", state.cause, state.reason);
  return given_reason.empty() || given_reason == state.reason ? detail : fmt::format("{} ({})", detail, given_reason);
}

}  // namespace

Split split_of(const ServiceConfig& config, const Restored& restored) {
  Split split{.stable = version_index(config, restored.stable), .epoch = static_cast<uint32_t>(restored.epoch & Split::kEpochMask)};
  if (!restored.rollout || rollout::is_over(restored.rollout->report.state.phase)) return split;
  const rollout::State& state = restored.rollout->report.state;
  return {state.weight_ppm, state.shadow_ppm, split.stable, version_index(config, state.canary),
          static_cast<uint32_t>(state.epoch & Split::kEpochMask)};
}

Split without_rises(const Split& applied, const Split& target) {
  if (applied.stable != target.stable) return applied;
  if (target.canary == Split::kNoCanary) return target;
  if (applied.canary != target.canary) return applied;
  Split split = target;
  split.weight_ppm = std::min(applied.weight_ppm, target.weight_ppm);
  split.shadow_ppm = std::min(applied.shadow_ppm, target.shadow_ppm);
  return split;
}

ServiceControl::ServiceControl(const ServiceConfig& config, Restored restored, store::WeightsPage& page, size_t slot,
                               metrics::Registry& metrics, Time now, int routers)
    : config_(config),
      page_(page),
      slot_(slot),
      word_(page.word(slot)),
      service_metrics_(metrics, config.name),
      stable_(std::move(restored.stable)),
      epoch_(restored.epoch),
      page_epoch_(restored.epoch),
      last_(std::move(restored.rollout)),
      endpoints_(config.versions.size()),
      routers_(routers),
      leading_(routers == 0),
      agreed_(routers == 0) {
  rollout::Spec spec{.service = config.name, .stable = stable_, .guard = config.guard};
  auto stored = last_ ? stored_spec(*last_) : Result<rollout::Spec>(Error{});
  if (stored) steps_ = stored->steps.size();
  if (stored && !rollout::is_over(last_->report.state.phase)) {
    spec = *stored;
    spec.gates = config.gates;
    rollout_ = resumed(spec, last_->report.state, leading_, now);
    started_ = begin_of(*last_, now);
  }
  if (stored && last_->report.state.phase == Phase::kSucceeded) {
    const auto age = std::chrono::milliseconds(wall_milliseconds() - last_->started_wall_ms - std::llround(last_->seconds * 1000));
    keep_warm(stored->keep_warm - std::max<std::chrono::nanoseconds>(age, std::chrono::nanoseconds(0)), now);
  }
  spec_.publish(std::make_shared<const rollout::Spec>(std::move(spec)));
  timeline_.clear(now);
  remember_trip();  // it may have been killed before anybody else heard of it
  settle();

  for (size_t i = 0; i < config.versions.size(); ++i) {
    gauges_.push_back(metrics.gauge_callback("serin_route_weight_ppm", "Share of requests that a version gets, in parts per million.",
                                             {{"service", config.name}, {"version", config.versions[i].name}},
                                             [this, i] { return static_cast<double>(share_of(i)); }));
  }
}

ServiceControl::Time ServiceControl::begin_of(const store::RolloutRecord& record, Time now) {
  const double wall_seconds = static_cast<double>(wall_milliseconds() - record.started_wall_ms) / 1000;
  return now - std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(std::max(record.seconds, wall_seconds)));
}

std::pair<std::string, std::shared_ptr<const rollout::Spec>> ServiceControl::running_spec() const {
  const std::lock_guard lock(mutex_);
  if (!rollout_) return {};
  return {rollout_->state().id, spec_.get()};
}

Learned ServiceControl::take_learned() {
  const std::lock_guard lock(mutex_);
  return {.config = config_,
          .routers = routers_,
          .stable = stable_,
          .latencies = latencies_,
          .recent = recent_,
          .rollout = own_ ? std::exchange(own_, std::nullopt) : std::exchange(rollout_, std::nullopt),
          .timeline = timeline_};
}

void ServiceControl::remember(Learned learned) {
  const std::lock_guard lock(mutex_);
  if (learned.stable == stable_ && same_version(learned.config, config_, stable_)) latencies_ = learned.latencies;
  if (!rollout_ || !goes_on(learned, config_, rollout_->state(), routers_)) return;
  rollout_ = std::move(learned.rollout);
  rollout_->set_gates(config_.gates);
  recent_ = learned.recent;
  timeline_ = std::move(learned.timeline);
  pace_.clear();
  settle();
}

bool ServiceControl::observe(rollout::Observation observation, Time now) {
  const std::lock_guard lock(mutex_);
  const uint64_t epoch = rollout_ ? rollout_->state().epoch : epoch_;
  if ((observation.epoch & Split::kEpochMask) != (epoch & Split::kEpochMask)) return false;
  observation.epoch = epoch;
  if (observation.arm == rollout::Arm::kStable && observation.outcome == rollout::Outcome::kOk) latencies_.record(observation.latency);
  recent_[static_cast<size_t>(observation.arm)].record(observation);
  service_metrics_.count(observation);
  if (!rollout_) return false;
  if (!leading_) note(observation);
  const Phase before = rollout_->state().phase;
  if (own_ && own_->observe(observation, now)) return verdict_of_own(before, now);
  if (!rollout_->observe(observation, now)) return false;
  changed(before, {}, "router", {}, now);
  return true;
}

bool ServiceControl::observe(rollout::ShadowPair pair, Time now) {
  const std::lock_guard lock(mutex_);
  if (!rollout_ || (pair.epoch & Split::kEpochMask) != (rollout_->state().epoch & Split::kEpochMask)) return false;
  pair.epoch = rollout_->state().epoch;
  service_metrics_.count(pair);
  if (!leading_) note(pair);
  const Phase before = rollout_->state().phase;
  if (own_ && own_->observe(pair, now)) return verdict_of_own(before, now);
  if (!rollout_->observe(pair, now)) return false;
  changed(before, {}, "router", {}, now);
  return true;
}

bool ServiceControl::observe_sample(const std::string& id, size_t guard, std::optional<double> value, Time now) {
  const std::lock_guard lock(mutex_);
  if (!rollout_ || rollout_->state().id != id) return false;
  const Phase before = rollout_->state().phase;
  if (!rollout_->observe_sample(guard, value, now)) return false;
  changed(before, {}, "router", {}, now);
  return true;
}

std::optional<rollout::State> ServiceControl::running_state() const {
  const std::lock_guard lock(mutex_);
  return rollout_ && leading_ ? std::optional(rollout_->state()) : std::nullopt;
}

bool ServiceControl::tick(Time now) {
  const std::lock_guard lock(mutex_);
  if (now >= next_second_) {  // a quantile walks through thousands of buckets
    next_second_ = now + std::chrono::seconds(1);
    set_pace();
    keep_watch(now);
  }
  if (!rollout_) return cool_down(now);
  if (!leading_) return false;
  const Phase before = rollout_->state().phase;
  if (!rollout_->tick(now)) return false;
  changed(before, {}, "router", {}, now);
  return true;
}

ServiceControl::Done ServiceControl::unchanged() const { return {.change = change_, .applied = split() == target()}; }

ServiceControl::Done ServiceControl::changed(rollout::Phase before, std::string_view event, std::string actor,
                                             const std::string& given_reason, Time now) {
  const rollout::State after = rollout_->state();
  if (rollout::is_over(after.phase)) finish(now);
  return written_down(after, event.empty() ? event_of(before, after.phase, after.cause) : event, std::move(actor), given_reason);
}

ServiceControl::Done ServiceControl::written_down(const rollout::State& after, std::string_view event, std::string actor,
                                                  const std::string& given_reason) {
  apply(without_rises(split(), target()));
  if (own_) own_->follow(after);
  settle();
  const store::HistoryEntry entry{.wall_ms = wall_milliseconds(),
                                  .service = config_.name,
                                  .rollout = after.id,
                                  .event = std::string(event),
                                  .actor = std::move(actor),
                                  .detail = detail_of(after, given_reason),
                                  .weight_ppm = after.weight_ppm};
  if (unsaved_history_.size() < store::kHistoryLimit) unsaved_history_.push_back(entry);  // bounded while the store cannot be written
  log::info("service '{}': {} by {}: {}", config_.name, entry.event, entry.actor, entry.detail);
  return {.change = ++change_, .applied = split() == target()};
}

/// The verdict is in: from here on the rollout is a record.
void ServiceControl::finish(Time now) {
  last_ = record(now);
  const rollout::State& state = last_->report.state;
  const rollout::VerdictRecord why = own_ && rollout::is_over(own_->state().phase) ? own_->explain() : rollout_->explain();
  rollout_.reset();
  own_.reset();
  sightings_ = {};
  if (state.phase == Phase::kSucceeded) {
    stable_ = state.canary;
    latencies_.clear();  // they were another version's
    keep_warm(spec_.get()->keep_warm, now);
  }
  epoch_ = std::max(epoch_, state.epoch) + 1;
  spec_.publish(std::make_shared<const rollout::Spec>(rollout::Spec{.service = config_.name, .stable = stable_, .guard = config_.guard}));
  conclude(why);
  if (!told_) remember_trip();
}

void ServiceControl::keep_warm(std::chrono::nanoseconds time, Time now) {
  const std::string& before = last_->report.state.stable;
  warm_.reset();
  if (time.count() > 0 && version_index(config_, before) != Split::kNoCanary)
    warm_ = Warm{before, now + std::chrono::duration_cast<Time::duration>(time)};
}

/// Nothing to be saved either way: the specification and the time of the verdict say until when.
bool ServiceControl::cool_down(Time now) {
  if (warm_ && now >= warm_->until) warm_.reset();
  if (leading_ && saved_change_ == change_) apply(target());
  return false;
}

/// Counts the verdict on last_ and keeps why.
void ServiceControl::conclude(const rollout::VerdictRecord& why) {
  const rollout::State& state = last_->report.state;
  verdict_ = told_verdict_.empty() ? store::verdict_json(*last_, why, wall_milliseconds()) : std::exchange(told_verdict_, "");
  if (unsaved_verdicts_.size() < store::kVerdictLimit)
    unsaved_verdicts_.push_back({.id = state.id, .wall_ms = wall_milliseconds(), .json = verdict_});
  const std::string outcome(state.phase == Phase::kSucceeded ? "promoted" : "rolled_back");
  service_metrics_.count_verdict(outcome, state.cause);
}

Split ServiceControl::target() const {
  Split idle{.stable = version_index(config_, stable_), .epoch = static_cast<uint32_t>(epoch_ & Split::kEpochMask)};
  if (!rollout_ && warm_) {
    idle.shadow_ppm = kWarmingPpm;
    idle.canary = version_index(config_, warm_->version);
  }
  if (!rollout_) return idle;
  const rollout::State& state = rollout_->state();
  return {state.weight_ppm, state.shadow_ppm, idle.stable, version_index(config_, state.canary),
          static_cast<uint32_t>(state.epoch & Split::kEpochMask)};
}

/// The epoch goes to the page with whatever raises it, before anybody can see it: one that was seen is never given out again (restore.cc).
void ServiceControl::apply(const Split& split_now) {
  const bool same_word = split_now == split();
  if (same_word && page_epoch_ == epoch_) return;
  const bool verdict = !rollout_ && last_;
  if (!same_word) next_second_ = {};  // a weight that stood for less than a second is part of the way, too
  page_epoch_ = epoch_;
  page_.store(slot_, split_now.pack(), epoch_, verdict ? last_->report.state.cause : "", verdict ? last_->report.state.reason : "");
}

}  // namespace serin::router
