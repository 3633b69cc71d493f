// service_commands.cc: what a person may ask of a service, and what is checked first: that nobody changed it meanwhile, that the phase allows it, and
// that what brings traffic to a canary can be written down.

#include <fmt/format.h>

#include <algorithm>

#include "router/config/split.h"
#include "router/control/service_control.h"
#include "router/control/wall_clock.h"
#include "router/rollout/verdict_record.h"

namespace serin::router {

using rollout::Phase;

Status ServiceControl::check_epoch(const Request& request) const {
  if (!request.if_match || *request.if_match == epoch_) return {};
  return Error{Code::kConflict,
               fmt::format("service '{}' is at epoch {}, not {}: somebody changed it first", config_.name, epoch_, *request.if_match)};
}

/// Of several routers the leader alone changes a rollout; only to end it needs nobody.
Status ServiceControl::check_leads() const {
  if (leading_) return {};
  return Error{Code::kUnavailable, "this router does not lead the others; until one leads, rollouts can only be aborted"};
}

/// Nothing that may bring traffic to a canary is begun while it could not be written down.
Status ServiceControl::check_store() const {
  SERIN_CHECK(check_leads());
  if (!agreed_) return Error{Code::kUnavailable, fmt::format("not all routers follow the last change yet: {}", waits_for_)};
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
  if (!spec.baseline.empty() && version_index(config_, spec.baseline) == Split::kNoCanary)
    return invalid(fmt::format("service '{}' has no version '{}' for the baseline arm", config_.name, spec.baseline));
  const size_t index = version_index(config_, spec.canary);
  if (const auto& count = endpoints_[index]; count && count->healthy == 0)
    return invalid(fmt::format("no endpoint of version '{}' of service '{}' is healthy (of {})", spec.canary, config_.name, count->all));
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
  if (spec.baseline == spec.stable) spec.baseline.clear();
  spec.gates = config_.gates;
  SERIN_CHECK(check_canary(spec));
  SERIN_CHECK(check_store());
  ++epoch_;
  last_ = store::RolloutRecord{.spec = rollout::print_spec(spec), .started_wall_ms = wall_milliseconds()};
  started_ = now;
  warm_.reset();
  steps_ = spec.steps.size();
  rollout_ = begun(spec, now);
  if (routers_ > 0) own_ = resumed(spec, rollout_->state(), /*of_all=*/false, now);
  spec_.publish(std::make_shared<const rollout::Spec>(std::move(spec)));
  service_metrics_.forget();
  timeline_.clear(now);
  pace_.clear();
  next_second_ = now;  // its first point is its start
  return changed(rollout_->state().phase, "started", request.actor, request.reason, now);
}

Result<ServiceControl::Done> ServiceControl::set_weight(uint32_t weight_ppm, const Request& request, Time now) {
  const std::lock_guard lock(mutex_);
  SERIN_CHECK(check_epoch(request));
  SERIN_TRY(rollout::Rollout * rollout, running("set the weight"));
  SERIN_CHECK(weight_ppm > rollout->state().weight_ppm ? check_store() : check_leads());
  const Phase before = rollout->state().phase;
  SERIN_CHECK(rollout->set_weight(weight_ppm, now));
  return command_done(before, "weight", request, now);
}

Result<ServiceControl::Done> ServiceControl::pause(const Request& request, Time now) {
  const std::lock_guard lock(mutex_);
  SERIN_CHECK(check_epoch(request));
  SERIN_TRY(rollout::Rollout * rollout, running("pause"));
  SERIN_CHECK(check_leads());
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

Result<ServiceControl::Done> ServiceControl::confirm(const std::string& id, std::string_view gate, const std::string& who, Time now) {
  const std::lock_guard lock(mutex_);
  SERIN_TRY(rollout::Rollout * rollout, running("pass a gate"));
  if (rollout->state().id != id) return Error{Code::kConflict, fmt::format("rollout '{}' is over", id)};
  SERIN_CHECK(check_store());
  const Phase before = rollout->state().phase;
  SERIN_CHECK(rollout->confirm(gate, now));
  return command_done(before, "confirmed", {.actor = who}, now);
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

Result<ServiceControl::Done> ServiceControl::undo(const Request& request, Time) {
  const std::lock_guard lock(mutex_);
  SERIN_CHECK(check_epoch(request));
  if (rollout_ || !last_ || last_->report.state.phase != Phase::kSucceeded) {
    if (rollout_)
      return Error{Code::kFailedPrecondition, fmt::format("rollout '{}' is {}: nothing was promoted yet; abort it instead",
                                                          rollout_->state().id, rollout::phase_name(rollout_->state().phase))};
    SERIN_TRY(const rollout::Rollout* none, running("undo"));
    (void)none;
  }
  rollout::State& state = last_->report.state;
  const size_t before = version_index(config_, state.stable);
  if (before == Split::kNoCanary)
    return Error{Code::kFailedPrecondition, fmt::format("version '{}', stable before, is no longer in the configuration", state.stable)};
  if (endpoints_[before] && endpoints_[before]->healthy == 0)
    return Error{Code::kFailedPrecondition, fmt::format("no endpoint of version '{}', stable before, is healthy", state.stable)};
  SERIN_CHECK(check_store());
  state.phase = Phase::kRolledBack;
  state.weight_ppm = 0;
  state.cause = "undo";
  state.reason = request.reason.empty() ? fmt::format("undone manually: version {} gets all traffic again", state.stable) : request.reason;
  stable_ = state.stable;
  warm_.reset();
  latencies_.clear();
  ++epoch_;
  spec_.publish(std::make_shared<const rollout::Spec>(rollout::Spec{.service = config_.name, .stable = stable_, .guard = config_.guard}));
  conclude({});
  return written_down(state, "undone", request.actor, request.reason);
}

Result<rollout::Spec> ServiceControl::last_spec() const {
  const std::lock_guard lock(mutex_);
  if (!last_) return Error{Code::kFailedPrecondition, fmt::format("service '{}' never had a rollout: cannot retry", config_.name)};
  SERIN_TRY(rollout::Spec spec, stored_spec(*last_));
  spec.stable.clear();       // whatever is stable now
  spec.sticky.salt.clear();  // other users first
  return spec;
}

}  // namespace serin::router
