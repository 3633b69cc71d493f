// rollout.cc: the state machine.
//
//   Progressing --last step done--> Promoting --> Baking --bake over--> Succeeded
//     |  ^  |                          ^  (no bake: straight to Succeeded)
//     |  |  +--max step duration--> Inconclusive --resume--> Progressing
//     |  +--resume-- Paused <--pause(), a manual gate, set_weight()
//     +--any guard's verdict, or abort(), from every phase that is not over--> RolledBack
//
// A step advances on its certificate, or on its duration, or on a person; without an answer of the canary it never does. The weight rises
// in three places only (enter_step, begin_promotion, a person's command) and nothing that lowers it waits for anything. Time comes in as an
// argument and is monotonic; going backwards it changes nothing.

#include "router/rollout/rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "router/rollout/judge.h"
#include "router/rollout/spec_words.h"

namespace serin::rollout {
namespace {

constexpr std::string_view kByHand = "by hand";  // cause while Promoting: a person's promotion does not bake

}  // namespace

struct Rollout::Machine {
  Machine(Spec given, const Baseline& baseline, Time now)
      : spec(std::move(given)), judge(spec, baseline), started(now), step_since(now), paused_since(now) {
    if (spec.steps.empty()) spec.steps = default_steps();
  }

  std::chrono::milliseconds age(Time now) const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::max(now, started) - started);
  }
  const Step& step() const { return spec.steps[static_cast<size_t>(state.step)]; }
  uint32_t planned_weight() const;
  int last_step() const { return static_cast<int>(spec.steps.size()) - 1; }

  void enter_step(int index, Time now);
  bool advance_if_done(Time now);
  bool step_done(Time now) const;
  void begin_promotion(uint32_t weight_ppm, std::string reason, Time now);
  void finish(Time now);
  bool roll_back(Verdict verdict);
  bool give_up_waiting(Time now);
  bool continue_promotion(Time now);
  void follow_manual_weight(Time now);
  Status refuse(std::string_view command) const;

  Spec spec;
  State state;
  Judge judge;
  Time started, step_since;
  Time paused_since;
  bool manual_weight = false;  // set_weight() was used and resume() has not followed yet
};

void Rollout::Machine::enter_step(int index, Time now) {
  if (index > last_step()) return begin_promotion(kAll - (spec.bake.count() > 0 ? spec.bake_control_ppm : 0), "every step passed", now);
  state.step = index;
  step_since = now;
  state.phase = Phase::kProgressing;
  const std::string place = fmt::format("step {} of {}", index + 1, spec.steps.size());
  if (step().is_pause()) {
    const bool manual = step().until == Step::Until::kManual;
    if (manual) state.phase = Phase::kPaused;
    state.reason = manual ? fmt::format("{}: waits for resume", place)
                          : fmt::format("{}: pauses for {}", place, config::print_duration(step().duration));
    return;
  }
  state.weight_ppm = step().weight_ppm;
  state.shadow_ppm = step().is_shadow() ? step().shadow_ppm : spec.guard.compare == Guard::Compare::kOff ? 0 : spec.guard.shadow_ppm;
  const std::string until =
      step().until == Step::Until::kDuration ? fmt::format("for {}", config::print_duration(step().duration)) : "until certified";
  state.reason = step().is_shadow() ? fmt::format("{}: shadow {} % {}", place, print_weight(step().shadow_ppm), until)
                                    : fmt::format("{}: {} % {}", place, print_weight(step().weight_ppm), until);
  judge.begin_step(state.weight_ppm, step().is_shadow());
}

bool Rollout::Machine::step_done(Time now) const {
  if (step().until == Step::Until::kCertified) return judge.certified();
  if (step().until == Step::Until::kManual || now - step_since < step().duration) return false;
  return step().is_pause() || judge.has_step_answers();  // no traffic: hold
}

bool Rollout::Machine::advance_if_done(Time now) {
  if (state.phase != Phase::kProgressing || !step_done(now) || !judge.held().empty()) return false;
  enter_step(state.step + 1, now);
  return true;
}

void Rollout::Machine::begin_promotion(uint32_t weight_ppm, std::string reason, Time now) {
  state.phase = Phase::kPromoting;
  state.weight_ppm = weight_ppm;
  state.shadow_ppm = 0;
  state.reason = std::move(reason);
  step_since = now;
  judge.begin_step(weight_ppm, /*shadow_step=*/false);
}

void Rollout::Machine::finish(Time now) {
  state.phase = Phase::kSucceeded;
  state.weight_ppm = kAll;
  state.cause = "promoted";
  state.reason = fmt::format("promoted after {} s", std::chrono::duration_cast<std::chrono::seconds>(now - started).count());
}

/// Promoting lasts until the next tick: by then its weight has been persisted and applied.
bool Rollout::Machine::continue_promotion(Time now) {
  if (state.phase == Phase::kPromoting && spec.bake.count() > 0 && state.cause != kByHand) {
    state.phase = Phase::kBaking;
    state.reason = fmt::format("bakes for {}, {} % stays on the old version", config::print_duration(spec.bake),
                               print_weight(kAll - state.weight_ppm));
    step_since = now;
    return true;
  }
  if (state.phase == Phase::kBaking && (now - step_since < spec.bake || !judge.has_step_answers() || !judge.held().empty())) return false;
  finish(now);
  return true;
}

bool Rollout::Machine::roll_back(Verdict verdict) {
  state.phase = Phase::kRolledBack;
  state.weight_ppm = 0;
  state.shadow_ppm = 0;
  state.cause = std::move(verdict.cause);
  state.reason = std::move(verdict.reason);
  return true;
}

bool Rollout::Machine::give_up_waiting(Time now) {
  if (step().is_pause() || now - step_since < step().duration + spec.certify.max_step_duration) return false;
  state.phase = Phase::kInconclusive;
  const std::string why =
      judge.has_step_answers() ? judge.held().empty() ? "not certified" : judge.held() : "insufficient data: no answer of the canary";
  state.reason = fmt::format("step {} of {}: {} within {}; the weight is held, resume to go on waiting", state.step + 1, spec.steps.size(),
                             why, config::print_duration(spec.certify.max_step_duration));
  return true;
}

/// What the steps up to the current one have set.
uint32_t Rollout::Machine::planned_weight() const {
  uint32_t weight = 0;
  for (int i = 0; i <= state.step; ++i) weight = std::max(weight, spec.steps[static_cast<size_t>(i)].weight_ppm);
  return weight;
}

/// The plan goes on from its last step that is not above the weight set by hand; that weight stays until the next step.
void Rollout::Machine::follow_manual_weight(Time now) {
  const uint32_t weight = state.weight_ppm;
  int index = 0;
  for (int i = 0; i <= last_step(); ++i)
    if (!spec.steps[static_cast<size_t>(i)].is_pause() && spec.steps[static_cast<size_t>(i)].weight_ppm <= weight) index = i;
  enter_step(index, now);
  if (weight == 0) return;  // nothing could be certified at 0: the step sets its own
  state.weight_ppm = weight;
  judge.begin_step(weight, /*shadow_step=*/false);
}

Status Rollout::Machine::refuse(std::string_view command) const {
  return Error{Code::kFailedPrecondition, fmt::format("rollout '{}' is {}: cannot {}", state.id, phase_name(state.phase), command)};
}

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
  machine->manual_weight = held.phase == Phase::kPaused && held.weight_ppm != machine->planned_weight();
  machine->judge.begin_step(held.weight_ppm, held.weight_ppm == 0 && held.shadow_ppm > 0);
  return Rollout(std::move(machine));
}

const State& Rollout::state() const { return machine_->state; }
const Spec& Rollout::spec() const { return machine_->spec; }

Report Rollout::report() const {
  Report report;
  report.state = machine_->state;
  machine_->judge.fill(report);
  return report;
}

bool Rollout::observe(const Observation& observation, Time now) {
  Machine& machine = *machine_;
  if (observation.epoch != machine.state.epoch || is_over(machine.state.phase)) return false;
  if (auto verdict = machine.judge.observe(observation, machine.age(now))) return machine.roll_back(*std::move(verdict));
  return observation.arm == Arm::kCanary && machine.advance_if_done(now);
}

bool Rollout::observe(const ShadowPair& pair, Time now) {
  Machine& machine = *machine_;
  if (pair.epoch != machine.state.epoch || is_over(machine.state.phase)) return false;
  if (auto verdict = machine.judge.observe(pair, machine.age(now))) return machine.roll_back(*std::move(verdict));
  return machine.advance_if_done(now);
}

bool Rollout::tick(Time now) {
  Machine& machine = *machine_;
  switch (machine.state.phase) {
    case Phase::kProgressing: return machine.advance_if_done(now) || machine.give_up_waiting(now);
    case Phase::kPromoting:
    case Phase::kBaking: return machine.continue_promotion(now);
    case Phase::kPaused:
    case Phase::kInconclusive:
    case Phase::kSucceeded:
    case Phase::kRolledBack: break;
  }
  return false;
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
  if (std::exchange(machine.manual_weight, false)) {
    machine.follow_manual_weight(now);
  } else if (gate) {
    machine.enter_step(machine.state.step + 1, now);
  } else if (phase == Phase::kInconclusive) {
    machine.enter_step(machine.state.step, now);  // a fresh certificate: what it had learned had led nowhere
  } else {
    machine.state.phase = Phase::kProgressing;
    machine.state.reason = fmt::format("step {} of {}: resumed by hand", machine.state.step + 1, machine.spec.steps.size());
    machine.step_since += std::max(now, machine.paused_since) - machine.paused_since;  // the step's clock stood still
  }
  return {};
}

Status Rollout::promote(Time now) {
  Machine& machine = *machine_;
  if (is_over(machine.state.phase)) return machine.refuse("promote");
  machine.begin_promotion(kAll, "promoted by hand", now);
  machine.state.cause = kByHand;
  return {};
}

Status Rollout::abort(std::string reason, Time) {
  Machine& machine = *machine_;
  if (machine.state.phase == Phase::kRolledBack) return {};
  if (machine.state.phase == Phase::kSucceeded) return machine.refuse("abort");
  machine.roll_back({"abort", reason.empty() ? "aborted by hand" : std::move(reason)});
  return {};
}

Status Rollout::set_weight(uint32_t weight_ppm, Time) {
  Machine& machine = *machine_;
  State& state = machine.state;
  if (is_over(state.phase) || state.phase == Phase::kPromoting || state.phase == Phase::kBaking) return machine.refuse("set the weight");
  if (weight_ppm > kAll) return Error{Code::kInvalidArgument, fmt::format("weight {} ppm is above 100 %", weight_ppm)};
  state.weight_ppm = weight_ppm;
  state.shadow_ppm = 0;
  state.phase = Phase::kPaused;
  state.reason = fmt::format("weight set to {} % by hand; resume to go on with the steps", print_weight(weight_ppm));
  ++state.epoch;
  machine.manual_weight = true;
  machine.judge.begin_step(weight_ppm, /*shadow_step=*/false);
  return {};
}

}  // namespace serin::rollout
