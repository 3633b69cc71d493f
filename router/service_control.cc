// service_control.cc: see the header for the one rule; the rest is bookkeeping around it.
//
// Two numbers called epoch: the rollout's own goes into the split word and comes back with every answer (an answer drawn under another one is
// no evidence); the service's rises with every command and verdict and is what If-Match compares. The service's is never the smaller one.

#include "router/service_control.h"

#include <fmt/format.h>

#include <algorithm>

#include "router/split.h"
#include "runtime/base/log.h"

namespace serin::router {
namespace {

using rollout::Phase;

constexpr Phase kPhases[] = {Phase::kProgressing, Phase::kPaused,    Phase::kInconclusive, Phase::kPromoting,
                             Phase::kBaking,      Phase::kSucceeded, Phase::kRolledBack};

/// The audit log's word for what the rollout did by itself.
std::string_view event_of(Phase before, Phase after) {
  if (before == after) return "weight";
  switch (after) {
    case Phase::kProgressing: return "resumed";
    case Phase::kPaused: return "paused";
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

uint32_t version_index(const ServiceConfig& config, const std::string& version) {
  const auto found = std::ranges::find(config.versions, version, &VersionConfig::name);
  return found == config.versions.end() ? Split::kNoCanary : static_cast<uint32_t>(found - config.versions.begin());
}

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
                               metrics::Registry& metrics)
    : config_(config),
      page_(page),
      slot_(slot),
      word_(page.word(slot)),
      metrics_(metrics),
      stable_(std::move(restored.stable)),
      epoch_(restored.epoch),
      last_(std::move(restored.rollout)),
      healthy_(config.versions.size()) {
  rollout::Spec spec{.service = config.name, .stable = stable_, .guard = config.guard};
  auto stored = last_ ? stored_spec(*last_) : Result<rollout::Spec>(Error{});
  if (stored) steps_ = stored->steps.size();
  if (stored && !rollout::is_over(last_->report.state.phase)) {
    const Time now = Time::clock::now();
    spec = *std::move(stored);
    rollout_ = rollout::Rollout::resume(spec, last_->report.state, {}, now);
    const double wall_seconds = static_cast<double>(wall_milliseconds() - last_->started_wall_ms) / 1000;
    started_ = now - std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(std::max(last_->seconds, wall_seconds)));
  }
  spec_.publish(std::make_shared<const rollout::Spec>(std::move(spec)));

  for (size_t i = 0; i < config.versions.size(); ++i) {
    gauges_.push_back(metrics.gauge_callback("serin_route_weight_ppm", "Share of requests that a version gets, in parts per million.",
                                             {{"service", config.name}, {"version", config.versions[i].name}}, [this, i] {
                                               const Split now = split();
                                               if (i == now.canary) return static_cast<double>(now.weight_ppm);
                                               return i == now.stable ? static_cast<double>(rollout::kAll - now.weight_ppm) : 0.0;
                                             }));
  }
  for (const Phase phase : kPhases)
    phases_.push_back(metrics.gauge("serin_rollout_phase", "1 for the phase that the current or last rollout is in.",
                                    {{"service", config.name}, {"phase", std::string(rollout::phase_name(phase))}}));
}

bool ServiceControl::observe(rollout::Observation observation, Time now) {
  const std::lock_guard lock(mutex_);
  const uint64_t epoch = rollout_ ? rollout_->state().epoch : epoch_;
  if ((observation.epoch & Split::kEpochMask) != (epoch & Split::kEpochMask)) return false;
  observation.epoch = epoch;
  if (!rollout_) {
    if (observation.arm == rollout::Arm::kStable && observation.outcome == rollout::Outcome::kOk) latencies_.record(observation.latency);
    return false;
  }
  const Phase before = rollout_->state().phase;
  if (!rollout_->observe(observation, now)) return false;
  changed(before, {}, "router", {}, now);
  return true;
}

bool ServiceControl::observe(rollout::ShadowPair pair, Time now) {
  const std::lock_guard lock(mutex_);
  if (!rollout_ || (pair.epoch & Split::kEpochMask) != (rollout_->state().epoch & Split::kEpochMask)) return false;
  pair.epoch = rollout_->state().epoch;
  const Phase before = rollout_->state().phase;
  if (!rollout_->observe(pair, now)) return false;
  changed(before, {}, "router", {}, now);
  return true;
}

bool ServiceControl::tick(Time now) {
  const std::lock_guard lock(mutex_);
  if (!rollout_) return false;
  // A promotion ends when its weight is in force, not when it is wanted.
  if (rollout_->state().phase == Phase::kPromoting && split() != target()) return false;
  const Phase before = rollout_->state().phase;
  if (!rollout_->tick(now)) return false;
  changed(before, {}, "router", {}, now);
  return true;
}

Status ServiceControl::check_epoch(const Request& request) const {
  if (!request.if_match || *request.if_match == epoch_) return {};
  return Error{Code::kConflict,
               fmt::format("service '{}' is at epoch {}, not {}: somebody changed it first", config_.name, epoch_, *request.if_match)};
}

/// Nothing that may bring traffic to a canary is begun while it could not be written down.
Status ServiceControl::check_store() const {
  if (!store_error_) return {};
  return Error{Code::kUnavailable, fmt::format("the store cannot be written ({}); until it can, weights only fall", store_error_->message)};
}

Result<rollout::Rollout*> ServiceControl::running(std::string_view command) {
  if (rollout_) return &*rollout_;
  if (!last_) return Error{Code::kFailedPrecondition, fmt::format("service '{}' never had a rollout: cannot {}", config_.name, command)};
  const rollout::State& state = last_->report.state;
  return Error{Code::kFailedPrecondition,
               fmt::format("rollout '{}' is {}: cannot {}", state.id, rollout::phase_name(state.phase), command)};
}

Status ServiceControl::check_canary(const rollout::Spec& spec) const {
  const auto invalid = [](std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; };
  for (const std::string& version : {spec.canary, spec.stable})
    if (version_index(config_, version) == Split::kNoCanary) {
      std::string names;
      for (const VersionConfig& known : config_.versions) names += (names.empty() ? "" : ", ") + known.name;
      return invalid(fmt::format("service '{}' has no version '{}'; it has {}", config_.name, version, names));
    }
  if (spec.canary == spec.stable) return invalid(fmt::format("version '{}' is already stable; canary and stable must differ", spec.canary));
  const size_t index = version_index(config_, spec.canary);
  if (healthy_[index] == size_t{0})
    return invalid(fmt::format("no endpoint of version '{}' of service '{}' is healthy (of {})", spec.canary, config_.name,
                               config_.versions[index].endpoints.size()));
  if (spec.stable == stable_) return {};
  return Error{Code::kFailedPrecondition,
               fmt::format("stable of service '{}' is version '{}', not '{}'", config_.name, stable_, spec.stable)};
}

Result<ServiceControl::Done> ServiceControl::start(rollout::Spec spec, const Request& request, Time now) {
  const std::lock_guard lock(mutex_);
  SERIN_CHECK(check_epoch(request));
  if (rollout_) {
    const rollout::State& state = rollout_->state();
    return Error{Code::kFailedPrecondition, fmt::format("rollout '{}' of service '{}' is {}: end it before another starts", state.id,
                                                        config_.name, rollout::phase_name(state.phase))};
  }
  if (spec.stable.empty()) spec.stable = stable_;
  SERIN_CHECK(check_canary(spec));
  SERIN_CHECK(check_store());
  spec_.publish(std::make_shared<const rollout::Spec>(spec));
  ++epoch_;
  last_ = store::RolloutRecord{.spec = rollout::print_spec(spec), .started_wall_ms = wall_milliseconds()};
  started_ = now;
  steps_ = spec.steps.size();
  rollout_ = rollout::Rollout::start(std::move(spec), fmt::format("{}-{}", config_.name, epoch_), epoch_, latencies_.snapshot(), now);
  evidence_.clear();
  return changed(rollout_->state().phase, "started", request.actor, request.reason, now);
}

Result<ServiceControl::Done> ServiceControl::set_weight(uint32_t weight_ppm, const Request& request, Time now) {
  const std::lock_guard lock(mutex_);
  SERIN_CHECK(check_epoch(request));
  SERIN_TRY(rollout::Rollout * rollout, running("set the weight"));
  if (weight_ppm > rollout->state().weight_ppm) SERIN_CHECK(check_store());
  const Phase before = rollout->state().phase;
  SERIN_CHECK(rollout->set_weight(weight_ppm, now));
  return command_done(before, "weight", request, now);
}

Result<ServiceControl::Done> ServiceControl::pause(const Request& request, Time now) {
  const std::lock_guard lock(mutex_);
  SERIN_CHECK(check_epoch(request));
  SERIN_TRY(rollout::Rollout * rollout, running("pause"));
  const Phase before = rollout->state().phase;
  SERIN_CHECK(rollout->pause(now));
  if (before == Phase::kPaused) return unchanged();
  return command_done(before, "paused", request, now);
}

Result<ServiceControl::Done> ServiceControl::resume(const Request& request, Time now) {
  const std::lock_guard lock(mutex_);
  SERIN_CHECK(check_epoch(request));
  SERIN_TRY(rollout::Rollout * rollout, running("resume"));
  SERIN_CHECK(check_store());
  const Phase before = rollout->state().phase;
  SERIN_CHECK(rollout->resume(now));
  return command_done(before, "resumed", request, now);
}

Result<ServiceControl::Done> ServiceControl::promote(const Request& request, Time now) {
  const std::lock_guard lock(mutex_);
  SERIN_CHECK(check_epoch(request));
  SERIN_TRY(rollout::Rollout * rollout, running("promote"));
  SERIN_CHECK(check_store());
  const Phase before = rollout->state().phase;
  SERIN_CHECK(rollout->promote(now));
  return command_done(before, "promoting", request, now);
}

Result<ServiceControl::Done> ServiceControl::abort(const Request& request, Time now) {
  const std::lock_guard lock(mutex_);
  SERIN_CHECK(check_epoch(request));
  if (!rollout_ && last_ && last_->report.state.phase == Phase::kRolledBack) return unchanged();
  SERIN_TRY(rollout::Rollout * rollout, running("abort"));
  const Phase before = rollout->state().phase;
  SERIN_CHECK(rollout->abort(request.reason, now));
  return command_done(before, "rolled_back", request, now);
}

ServiceControl::Done ServiceControl::command_done(rollout::Phase before, std::string_view event, const Request& request, Time now) {
  epoch_ = std::max(epoch_ + 1, rollout_->state().epoch);
  return changed(before, event, request.actor, request.reason, now);
}

ServiceControl::Done ServiceControl::unchanged() const { return {.change = change_, .applied = split() == target()}; }

ServiceControl::Done ServiceControl::changed(rollout::Phase before, std::string_view event, std::string actor,
                                             const std::string& given_reason, Time now) {
  const rollout::State after = rollout_->state();
  if (rollout::is_over(after.phase)) finish(now);
  apply(without_rises(split(), target()));
  const store::HistoryEntry entry{.wall_ms = wall_milliseconds(),
                                  .service = config_.name,
                                  .rollout = after.id,
                                  .event = std::string(event.empty() ? event_of(before, after.phase) : event),
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
  const bool promoted = state.phase == Phase::kSucceeded;
  rollout_.reset();
  if (promoted) {
    stable_ = state.canary;
    latencies_.clear();  // they were another version's
  }
  epoch_ = std::max(epoch_, state.epoch) + 1;
  spec_.publish(std::make_shared<const rollout::Spec>(rollout::Spec{.service = config_.name, .stable = stable_, .guard = config_.guard}));
  const std::string outcome(promoted ? "promoted" : "rolled_back");
  auto& counter = verdicts_[{outcome, state.cause}];
  if (!counter)
    counter = metrics_.counter("serin_rollout_verdicts_total", "Rollouts that have ended.",
                               {{"service", config_.name}, {"outcome", outcome}, {"cause", state.cause}});
  counter->add();
}

Split ServiceControl::target() const {
  const Split idle{.stable = version_index(config_, stable_), .epoch = static_cast<uint32_t>(epoch_ & Split::kEpochMask)};
  if (!rollout_) return idle;
  const rollout::State& state = rollout_->state();
  return {state.weight_ppm, state.shadow_ppm, idle.stable, version_index(config_, state.canary),
          static_cast<uint32_t>(state.epoch & Split::kEpochMask)};
}

void ServiceControl::apply(const Split& split_now) {
  if (split_now == split()) return;
  const bool verdict = !rollout_ && last_;
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

std::optional<ServiceControl::Unsaved> ServiceControl::unsaved(Time now) const {
  const std::lock_guard lock(mutex_);
  if (change_ == saved_change_) return std::nullopt;
  store::Change change{.record = {.service = config_.name, .stable = stable_, .epoch = epoch_}, .history = unsaved_history_};
  if (last_) change.record.rollout = record(now);
  return Unsaved{.change = change_, .what = std::move(change)};
}

void ServiceControl::saved(const Unsaved& unsaved) {
  const std::lock_guard lock(mutex_);
  const auto written = static_cast<std::ptrdiff_t>(unsaved.what.history.size());
  unsaved_history_.erase(unsaved_history_.begin(), unsaved_history_.begin() + written);
  saved_change_ = unsaved.change;
  store_error_.reset();
  if (saved_change_ == change_) apply(target());  // else something newer must be written first
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
  ServiceStatus status{.service = config_.name, .stable = stable_, .epoch = epoch_};
  if (!last_) return status;
  store::RolloutRecord current = record(now);
  status.rollout = std::move(current.report);
  status.rollout_steps = steps_;
  status.rollout_seconds = current.seconds;
  return status;
}

void ServiceControl::set_healthy_endpoints(size_t version, size_t healthy) {
  const std::lock_guard lock(mutex_);
  if (version < healthy_.size()) healthy_[version] = healthy;
}

std::optional<size_t> ServiceControl::healthy_endpoints(size_t version) const {
  const std::lock_guard lock(mutex_);
  return version < healthy_.size() ? healthy_[version] : std::nullopt;
}

void ServiceControl::update_metrics() {
  const std::lock_guard lock(mutex_);
  if (!last_) return;
  const rollout::Report report = rollout_ ? rollout_->report() : last_->report;
  for (size_t i = 0; i < std::size(kPhases); ++i) phases_[i]->set(kPhases[i] == report.state.phase ? 1 : 0);
  for (const rollout::Evidence& evidence : report.evidence) {
    auto& gauge = evidence_[evidence.guard];
    if (!gauge)
      gauge = metrics_.gauge("serin_route_evidence_bits", "Evidence against the canary: log2 of the guard's e-value.",
                             {{"service", config_.name}, {"guard", evidence.guard}});
    gauge->set(evidence.bits);
  }
}

}  // namespace serin::router
