// rollout.cc: the facade of a rollout: checks answers, ticks and commands against the phase, and passes them to the machine.

#include "router/rollout/rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "router/rollout/machine.h"
#include "router/rollout/spec_parts.h"

namespace serin::rollout {

Rollout::Rollout(std::unique_ptr<Machine> machine) : machine_(std::move(machine)) {}
Rollout::Rollout(Rollout&&) noexcept = default;
Rollout& Rollout::operator=(Rollout&&) noexcept = default;
Rollout::~Rollout() = default;

Rollout Rollout::start(Spec spec, std::string id, uint64_t epoch, const Baseline& baseline, Time now) {
  auto machine = std::make_unique<Machine>(std::move(spec), baseline, now);
  State& state = machine->state;
  state.id = std::move(id);
  state.service = machine->spec.service;
  state.stable = machine->spec.stable;
  state.canary = machine->spec.canary;
  state.epoch = epoch;
  if (machine->spec.gates.rollout)
    machine->wait_at(kConfirmRollout, "not begun yet");
  else
    machine->enter_step(0, now);
  return Rollout(std::move(machine));
}

Rollout Rollout::resume(Spec spec, State state, const Baseline& baseline, Time now) {
  auto machine = std::make_unique<Machine>(std::move(spec), baseline, now);
  machine->state = std::move(state);
  State& held = machine->state;
  const int last = machine->last_step();
  if (held.step < 0 || held.step > last) {  // not a step of this specification: somebody must look
    held.step = std::clamp(held.step, 0, last);
    if (!is_over(held.phase)) held.phase = Phase::kPaused;
  }
  held.weight_ppm = std::min(held.weight_ppm, kAll);
  machine->manual_weight = held.phase == Phase::kPaused && machine->awaits().empty() && held.weight_ppm != machine->planned_weight();
  machine->judge.begin_step(held.weight_ppm, held.weight_ppm == 0 && held.shadow_ppm > 0);
  return Rollout(std::move(machine));
}

const State& Rollout::state() const { return machine_->state; }
const Spec& Rollout::spec() const { return machine_->spec; }

Report Rollout::report() const {
  Report report;
  machine_->fill(report);
  return report;
}

VerdictRecord Rollout::explain() const { return machine_->explain(); }

bool Rollout::observe(const Observation& observation, Time now) {
  Machine& machine = *machine_;
  if (observation.epoch != machine.state.epoch || is_over(machine.state.phase)) return false;
  if (auto verdict = machine.judge.observe(observation, machine.exact_age(now))) return machine.roll_back(*std::move(verdict));
  if (observation.sign) return false;
  machine.silence.observe(observation, now);
  return observation.arm == Arm::kCanary && machine.advance_if_done(now);
}

bool Rollout::observe(const ShadowPair& pair, Time now) {
  Machine& machine = *machine_;
  if (pair.epoch != machine.state.epoch || is_over(machine.state.phase)) return false;
  if (auto verdict = machine.judge.observe(pair, machine.age(now))) return machine.roll_back(*std::move(verdict));
  return machine.advance_if_done(now);
}

bool Rollout::observe(const ResourceRound& round, Time now) {
  Machine& machine = *machine_;
  if (round.epoch != machine.state.epoch || is_over(machine.state.phase)) return false;
  if (auto verdict = machine.judge.observe(round, round.weight_ppm.value_or(machine.state.weight_ppm), machine.age(now)))
    return machine.roll_back(*std::move(verdict));
  return false;
}

bool Rollout::observe_sample(size_t guard, std::optional<double> value, Time now) {
  Machine& machine = *machine_;
  if (is_over(machine.state.phase)) return false;
  if (auto verdict = machine.judge.observe_sample(guard, value, machine.age(now))) return machine.roll_back(*std::move(verdict));
  return false;
}

bool Rollout::observe_outcomes(size_t guard, const OutcomeEvidence& evidence, Time now) {
  Machine& machine = *machine_;
  if (is_over(machine.state.phase)) return false;
  if (auto verdict = machine.judge.observe_outcomes(guard, evidence, machine.age(now))) return machine.roll_back(*std::move(verdict));
  return false;
}

bool Rollout::tick(Time now) {
  Machine& machine = *machine_;
  if (is_over(machine.state.phase)) return false;
  machine.last_age = machine.age(now);
  if (machine.watch_silence(now)) return true;
  if (machine.hold || !machine.may_rise) return false;
  switch (machine.state.phase) {
    case Phase::kProgressing: return machine.advance_if_done(now) || machine.give_up_waiting(now);
    case Phase::kPromoting:
    case Phase::kBaking: return machine.may_promote && machine.continue_promotion(now);
    case Phase::kPaused:
    case Phase::kInconclusive:
    case Phase::kSucceeded:
    case Phase::kRolledBack: break;
  }
  return false;
}

std::string_view Rollout::awaits() const { return machine_->awaits(); }

Status Rollout::confirm(std::string_view gate, Time now) {
  if (gate.empty() || machine_->awaits() != gate) return machine_->refuse(fmt::format("pass {}", gate));
  if (gate == kConfirmPromotion && !machine_->may_promote) return machine_->refuse_beside_others();
  machine_->pass_gate(now);
  return {};
}

void Rollout::set_gates(const Gates& gates) { machine_->spec.gates = gates; }

void Rollout::let_rise(bool allowed) { machine_->may_rise = allowed; }

void Rollout::let_promote(bool allowed) { machine_->may_promote = allowed; }
void Rollout::set_capacity(uint32_t weight_ppm) { machine_->capacity = weight_ppm; }

bool Rollout::end_promotion(Time now) {
  if (machine_->state.phase != Phase::kPromoting && machine_->state.phase != Phase::kBaking) return false;
  machine_->finish(now);
  return true;
}

void Rollout::follow(State state) {
  Machine& machine = *machine_;
  const bool same_step = state.step == machine.state.step && state.weight_ppm == machine.state.weight_ppm &&
                         state.shadow_ppm == machine.state.shadow_ppm && state.epoch == machine.state.epoch;
  machine.state = std::move(state);
  machine.state.step = std::clamp(machine.state.step, 0, machine.last_step());
  if (!same_step) machine.judge.begin_step(machine.state.weight_ppm, machine.state.weight_ppm == 0 && machine.state.shadow_ppm > 0);
}

bool Rollout::trip(std::string cause, std::string reason) {
  if (is_over(machine_->state.phase)) return false;
  return machine_->roll_back({std::move(cause), std::move(reason)});
}

Status Rollout::pause(Time now) {
  State& state = machine_->state;
  if (state.phase == Phase::kPaused) return {};
  if (state.phase != Phase::kProgressing && state.phase != Phase::kInconclusive) return machine_->refuse("pause");
  state.phase = Phase::kPaused;
  state.reason = "paused by hand";
  machine_->paused_since = now;
  return {};
}

Status Rollout::resume(Time now) {
  Machine& machine = *machine_;
  const Phase phase = machine.state.phase;
  if (phase != Phase::kPaused && phase != Phase::kInconclusive) return machine.refuse("resume");
  const bool gate = machine.step().is_pause() && machine.step().until == Step::Until::kManual;
  const bool leaves_step = machine.awaits() != kConfirmRollout && (gate || !machine.awaits().empty()) && !machine.manual_weight;
  if (leaves_step && !machine.may_promote && machine.weight_of(machine.state.step + 1) == kAll) return machine.refuse_beside_others();
  if (!machine.awaits().empty()) {
    machine.pass_gate(now);
  } else if (std::exchange(machine.manual_weight, false)) {
    machine.follow_manual_weight(now);
  } else if (gate) {
    machine.enter_step(machine.state.step + 1, now);
  } else if (phase == Phase::kInconclusive) {
    machine.enter_step(machine.state.step, now);  // a fresh certificate: what it had learned had led nowhere
  } else {
    machine.state.phase = Phase::kProgressing;
    machine.state.reason = fmt::format("step {} of {}: resumed manually", machine.state.step + 1, machine.spec.steps.size());
    machine.step_since += std::max(now, machine.paused_since) - machine.paused_since;  // the step's clock stood still
  }
  return {};
}

Status Rollout::promote(Time now) {
  Machine& machine = *machine_;
  if (is_over(machine.state.phase)) return machine.refuse("promote");
  SERIN_CHECK(machine.refuse_beyond_capacity(kAll));
  machine.begin_promotion(kAll, "promoted by hand", now);
  machine.state.cause = kByHand;
  return {};
}

Status Rollout::abort(std::string reason, Time) {
  Machine& machine = *machine_;
  if (machine.state.phase == Phase::kRolledBack) return {};
  if (machine.state.phase == Phase::kSucceeded) return machine.refuse("abort");
  machine.roll_back({std::string(kAborted), reason.empty() ? "aborted by hand" : std::move(reason)});
  return {};
}

Status Rollout::set_weight(uint32_t weight_ppm, Time) {
  Machine& machine = *machine_;
  State& state = machine.state;
  if (is_over(state.phase) || state.phase == Phase::kPromoting || state.phase == Phase::kBaking) return machine.refuse("set the weight");
  if (weight_ppm > kAll) return Error{Code::kInvalidArgument, fmt::format("weight {} ppm is above 100 %", weight_ppm)};
  if (weight_ppm > state.weight_ppm) SERIN_CHECK(machine.refuse_beyond_capacity(weight_ppm));
  machine.hold.reset();
  state.weight_ppm = weight_ppm;
  state.shadow_ppm = 0;
  state.phase = Phase::kPaused;
  state.cause.clear();
  state.reason = fmt::format("weight set to {} % manually; resume to continue with the steps", print_weight(weight_ppm));
  ++state.epoch;
  machine.manual_weight = true;
  machine.judge.begin_step(weight_ppm, /*shadow_step=*/false);
  return {};
}

}  // namespace serin::rollout
