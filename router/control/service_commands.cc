// service_commands.cc: what a person may ask of a service, and what is checked first: that nobody changed it meanwhile, that the phase allows it, and
// that what brings traffic to a canary can be written down.

#include "router/control/service_control.h"

namespace serin::router {

using rollout::Phase;

/// Nothing that may bring traffic to a canary is begun while it could not be written down.
Status ServiceControl::check_store() const {
  SERIN_CHECK(leadership_.check_agreed());
  return ledger_.check();
}

Result<ServiceControl::Done> ServiceControl::start(rollout::Spec spec, const Request& request, Time now) {
  const MutexLock lock(mutex_);
  SERIN_CHECK(state_.check_epoch(request.if_match));
  SERIN_TRY(spec, state_.prepared(std::move(spec)));
  SERIN_CHECK(check_store());
  state_.begin(std::move(spec), now);
  spec_.publish(state_.spec);
  watch_.begin(now);
  watch_.look_soon(now);  // its first point is its start
  return changed(state_.rollout->state().phase, "started", request.actor, request.reason, now);
}

Result<ServiceControl::Done> ServiceControl::set_weight(uint32_t weight_ppm, const Request& request, Time now) {
  const MutexLock lock(mutex_);
  SERIN_CHECK(state_.check_epoch(request.if_match));
  SERIN_TRY(rollout::Rollout * rollout, state_.running("set the weight"));
  SERIN_CHECK(weight_ppm > rollout->state().weight_ppm ? check_store() : leadership_.check_leads());
  const Phase before = rollout->state().phase;
  SERIN_CHECK(rollout->set_weight(weight_ppm, now));
  return command_done(before, "weight", request, now);
}

Result<ServiceControl::Done> ServiceControl::pause(const Request& request, Time now) {
  const MutexLock lock(mutex_);
  SERIN_CHECK(state_.check_epoch(request.if_match));
  SERIN_TRY(rollout::Rollout * rollout, state_.running("pause"));
  SERIN_CHECK(leadership_.check_leads());
  const Phase before = rollout->state().phase;
  SERIN_CHECK(rollout->pause(now));
  if (before == Phase::kPaused) return unchanged();
  return command_done(before, "paused", request, now);
}

Result<ServiceControl::Done> ServiceControl::resume(const Request& request, Time now) {
  const MutexLock lock(mutex_);
  SERIN_CHECK(state_.check_epoch(request.if_match));
  SERIN_TRY(rollout::Rollout * rollout, state_.running("resume"));
  SERIN_CHECK(check_store());
  const Phase before = rollout->state().phase;
  SERIN_CHECK(rollout->resume(now));
  return command_done(before, "resumed", request, now);
}

Result<ServiceControl::Done> ServiceControl::confirm(const std::string& id, std::string_view gate, const std::string& who, Time now) {
  const MutexLock lock(mutex_);
  SERIN_TRY(rollout::Rollout * rollout, state_.running("pass a gate"));
  if (rollout->state().id != id) return Error{Code::kConflict, "rollout '" + id + "' is over"};
  SERIN_CHECK(check_store());
  const Phase before = rollout->state().phase;
  SERIN_CHECK(rollout->confirm(gate, now));
  return command_done(before, "confirmed", {.actor = who}, now);
}

Result<ServiceControl::Done> ServiceControl::promote(const Request& request, Time now) {
  const MutexLock lock(mutex_);
  SERIN_CHECK(state_.check_epoch(request.if_match));
  SERIN_TRY(rollout::Rollout * rollout, state_.running("promote"));
  SERIN_CHECK(check_store());
  const Phase before = rollout->state().phase;
  SERIN_CHECK(rollout->promote(now));
  return command_done(before, "promoting", request, now);
}

/// Of several routers any may end a rollout.
Result<ServiceControl::Done> ServiceControl::abort(const Request& request, Time now) {
  const MutexLock lock(mutex_);
  SERIN_CHECK(state_.check_epoch(request.if_match));
  if (!state_.rollout && state_.last && state_.last_state().phase == Phase::kRolledBack) return unchanged();
  SERIN_TRY(rollout::Rollout * rollout, state_.running("abort"));
  const Phase before = rollout->state().phase;
  SERIN_CHECK(rollout->abort(request.reason, now));
  return command_done(before, "rolled_back", request, now);
}

ServiceControl::Done ServiceControl::command_done(Phase before, std::string_view event, const Request& request, Time now) {
  state_.raise_epoch();
  return changed(before, event, request.actor, request.reason, now);
}

Result<ServiceControl::Done> ServiceControl::undo(const Request& request, Time) {
  const MutexLock lock(mutex_);
  SERIN_CHECK(state_.check_epoch(request.if_match));
  SERIN_CHECK(state_.check_undo());
  SERIN_CHECK(check_store());
  state_.undo(request.reason);
  spec_.publish(state_.spec);
  conclude({});
  return written_down(state_.last_state(), "undone", request.actor, request.reason);
}

Status ServiceControl::wait_until_agreed(std::chrono::milliseconds longest) {
  const MutexLock lock(mutex_);
  const auto settled = [&]() SERIN_REQUIRES(mutex_) { return leadership_.agreed() || !leadership_.leading(); };
  return saved_.wait_for(mutex_, longest, settled) ? Status() : check_store();
}

}  // namespace serin::router
