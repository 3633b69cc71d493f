// service_control.cc: see the header for the one rule; the rest is bookkeeping around it.
//
// Two numbers called epoch: the rollout's own goes into the split word and comes back with every answer (an answer drawn under another one is
// no evidence); the service's rises with every command and verdict and is what If-Match compares. The service's is never the smaller one.

#include "router/service_control.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "router/rollout/draw.h"
#include "router/split.h"
#include "router/verdict_json.h"
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

int64_t wall_milliseconds() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
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

uint32_t ServiceControl::share_of(size_t version) const {
  const Split now = split();
  if (version == now.canary) return now.weight_ppm;
  const auto asked = spec_.get();
  const uint32_t baseline = now.canary == Split::kNoCanary ? 0 : baseline_weight(*asked, now.weight_ppm);
  if (version == now.stable) return rollout::kAll - now.weight_ppm - baseline;
  return baseline > 0 && config_.versions[version].name == asked->baseline ? baseline : 0;
}

std::pair<std::string, std::shared_ptr<const rollout::Spec>> ServiceControl::running_spec() const {
  const std::lock_guard lock(mutex_);
  if (!rollout_) return {};
  return {rollout_->state().id, spec_.get()};
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
  if (rollout_) watch_until_ = now + std::chrono::minutes(1);
  if (now >= watch_until_) return;
  const rollout::Report report = rollout_ ? rollout_->report() : last_->report;
  const Split applied = split();
  timeline_.add(
      {.weight_ppm = applied.weight_ppm, .shadow_ppm = applied.shadow_ppm, .stable = recent_summary_[0], .canary = recent_summary_[1]},
      report.evidence, now);
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
  verdict_ = told_verdict_.empty() ? verdict_json(*last_, why, wall_milliseconds()) : std::exchange(told_verdict_, "");
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

void ServiceControl::apply(const Split& split_now) {
  if (split_now == split()) return;
  const bool verdict = !rollout_ && last_;
  next_second_ = {};  // a weight that stood for less than a second is part of the way, too
  page_.store(slot_, split_now.pack(), epoch_, verdict ? last_->report.state.cause : "", verdict ? last_->report.state.reason : "");
}

double ServiceControl::seconds(Time now) const { return std::chrono::duration<double>(now - started_).count(); }

store::RolloutRecord ServiceControl::record(Time now) const {
  store::RolloutRecord record = *last_;
  if (!rollout_) return record;
  record.report = rollout_->report();
  record.seconds = seconds(now);
  return record;
}

Result<bool> ServiceControl::save(store::Store& store, Time now) {
  bool wrote = false;
  while (const auto unsaved_now = unsaved(now)) {
    if (const Status status = store.save(unsaved_now->what); !status) {
      save_failed(*unsaved_now, status.error());
      return status.error();
    }
    saved(*unsaved_now);
    wrote = true;
  }
  return wrote;
}

std::optional<ServiceControl::Unsaved> ServiceControl::unsaved(Time now) const {
  const std::lock_guard lock(mutex_);
  if (change_ == saved_change_) return std::nullopt;
  store::Change change{.shared = leading_,
                       .record = {.service = config_.name, .stable = stable_, .epoch = epoch_},
                       .history = unsaved_history_,
                       .verdicts = unsaved_verdicts_};
  if (last_) change.record.rollout = record(now);
  return Unsaved{.change = change_, .what = std::move(change)};
}

void ServiceControl::saved(const Unsaved& unsaved) {
  const std::lock_guard lock(mutex_);
  const auto written = static_cast<std::ptrdiff_t>(unsaved.what.history.size());
  unsaved_history_.erase(unsaved_history_.begin(), unsaved_history_.begin() + written);
  unsaved_verdicts_.erase(unsaved_verdicts_.begin(), unsaved_verdicts_.begin() + static_cast<std::ptrdiff_t>(unsaved.what.verdicts.size()));
  saved_change_ = unsaved.change;
  store_error_.reset();
  if (unsaved.what.shared && routers_ > 0) agreed_ = false;              // until the others follow
  if (saved_change_ == change_ && unsaved.what.shared) apply(target());  // else something newer must be written first
  settle();
  saved_.notify_all();
}

void ServiceControl::save_failed(const Unsaved& unsaved, const Error& error) {
  const std::lock_guard lock(mutex_);
  failed_change_ = unsaved.change;
  store_error_ = error;
  saved_.notify_all();
}

Status ServiceControl::wait_until_saved(uint64_t change) {
  std::unique_lock lock(mutex_);
  saved_.wait(lock, [&] { return saved_change_ >= change || failed_change_ >= change; });
  if (saved_change_ >= change) return {};
  return Error{Code::kUnavailable, fmt::format("accepted, but the store cannot be written ({}); no weight rises until it can",
                                               store_error_ ? store_error_->message : "")};
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
  status.rollout_seconds = current.seconds;
  return status;
}

std::optional<std::string> ServiceControl::explain(const std::string& id, Time now) const {
  const std::lock_guard lock(mutex_);
  if (!last_) return std::nullopt;
  const store::RolloutRecord current = record(now);
  if (id != config_.name && id != current.report.state.id) return std::nullopt;
  if (rollout_) return verdict_json(current, rollout_->explain(), wall_milliseconds());
  if (verdict_.empty() && routers_ > 0) return std::nullopt;  // another router's: the store has it
  return verdict_.empty() ? verdict_json(current, {}, 0) : verdict_;
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
