// machine.cc: the state machine of a rollout: steps, promotion, silence and verdicts. Every function that returns bool reports whether the
// state changed.

#include "router/rollout/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "router/rollout/spec_parts.h"

namespace serin::rollout {

Machine::Machine(Spec given, const Baseline& baseline, Time now)
    : spec(std::move(given)), judge(spec, baseline), started(now), step_since(now), paused_since(now), silence(spec.guard) {
  if (spec.steps.empty()) spec.steps = default_steps();
}

std::string_view Machine::awaits() const {
  for (const std::string_view gate : {kConfirmRollout, kConfirmIncrease, kConfirmPromotion})
    if (state.phase == Phase::kPaused && state.cause == gate) return gate;
  return "";
}

/// That a step sets, or the promotion behind the last one.
uint32_t Machine::weight_of(int index) const { return index > last_step() ? kAll : spec.steps[static_cast<size_t>(index)].weight_ppm; }

/// What the move to that step, or past the last one, needs a yes for; nothing: it needs none.
std::string_view Machine::gate_before(int index) const {
  const uint32_t next = weight_of(index);
  if (next <= state.weight_ppm) return "";
  if (next == kAll && spec.gates.promotion) return kConfirmPromotion;
  return spec.gates.increase ? kConfirmIncrease : "";
}

void Machine::wait_at(std::string_view gate, std::string_view place) {
  state.phase = Phase::kPaused;
  state.cause = gate;
  state.reason = fmt::format("{}: waits for {}", place, gate);
}

void Machine::pass_gate(Time now) {
  const bool begins = awaits() == kConfirmRollout;
  enter_step(begins ? 0 : state.step + 1, now);
}

void Machine::enter_step(int index, Time now) {
  hold.reset();
  state.cause.clear();
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
  state.shadow_ppm = step().shadow_ppm;
  if (!step().is_shadow() && spec.guard.compare != Guard::Compare::kOff) state.shadow_ppm = spec.guard.shadow_ppm.value_or(kAutoShadowPpm);
  const bool timed = step().until == Step::Until::kDuration;
  state.reason = fmt::format("{}: {}{} % {}", place, step().is_shadow() ? "shadow " : "",
                             print_weight(step().is_shadow() ? step().shadow_ppm : step().weight_ppm),
                             timed ? "for " + config::print_duration(step().duration) : "until certified");
  judge.begin_step(state.weight_ppm, step().is_shadow());
}

bool Machine::step_done(Time now) const {
  if (step().until == Step::Until::kCertified) return judge.certified();
  if (step().until == Step::Until::kManual || now - step_since < step().duration) return false;
  return step().is_pause() || judge.has_step_answers();  // no traffic: hold
}

bool Machine::advance_if_done(Time now) {
  if (state.phase != Phase::kProgressing || hold || !may_rise || !step_done(now) || !judge.held(age(now)).empty()) return false;
  waits_for_others = !may_promote && weight_of(state.step + 1) == kAll;
  if (waits_for_others) return false;
  waits_for_capacity = weight_of(state.step + 1) > capacity;
  if (waits_for_capacity) return false;
  if (const std::string_view gate = gate_before(state.step + 1); !gate.empty())
    wait_at(gate, fmt::format("step {} of {} is done", state.step + 1, spec.steps.size()));
  else
    enter_step(state.step + 1, now);
  return true;
}

void Machine::begin_promotion(uint32_t weight_ppm, std::string reason, Time now) {
  hold.reset();
  state.phase = Phase::kPromoting;
  state.weight_ppm = weight_ppm;
  state.shadow_ppm = 0;
  state.reason = std::move(reason);
  step_since = now;
  judge.begin_step(weight_ppm, /*shadow_step=*/false);
}

void Machine::finish(Time now) {
  state.phase = Phase::kSucceeded;
  state.weight_ppm = kAll;
  state.cause = "promoted";
  state.reason = fmt::format("promoted after {} s", std::chrono::duration_cast<std::chrono::seconds>(now - started).count());
}

/// Promoting lasts until the next tick: by then its weight has been persisted and applied.
bool Machine::continue_promotion(Time now) {
  if (state.phase == Phase::kPromoting && spec.bake.count() > 0 && state.cause != kByHand) {
    state.phase = Phase::kBaking;
    state.reason = fmt::format("bakes for {}, {} % stays on the old version", config::print_duration(spec.bake),
                               print_weight(kAll - state.weight_ppm));
    step_since = now;
    return true;
  }
  if (state.phase == Phase::kBaking && (now - step_since < spec.bake || !judge.has_step_answers() || !judge.held(age(now)).empty()))
    return false;
  finish(now);
  return true;
}

bool Machine::roll_back(Verdict verdict) {
  state.phase = Phase::kRolledBack;
  state.weight_ppm = 0;
  state.shadow_ppm = 0;
  state.cause = std::move(verdict.cause);
  state.reason = std::move(verdict.reason);
  return true;
}

/// Silent for twice the deadline: no traffic for a while, in case it only restarts. The third time is the last.
bool Machine::watch_silence(Time now) {
  constexpr int kMostHolds = 3;
  constexpr std::chrono::seconds kShortestHold{10};
  if (hold) {
    if (now < hold->until || !may_rise) return false;
    state.weight_ppm = hold->weight_ppm;
    state.reason = fmt::format("tries the canary again after silence {} of {}", holds, kMostHolds);
    hold.reset();
    silence.restart();
    return true;
  }
  if (state.weight_ppm == 0 || !silence.silent(now)) return false;
  ++holds;
  silences.push_back({.at = age(now), .arm = Arm::kCanary, .share = silence.seconds(now), .bits = static_cast<double>(holds)});
  const std::string silence_text =
      fmt::format("the canary gave no answer for {} while stable did", config::print_duration(2 * silence.deadline()));
  if (holds == kMostHolds) return roll_back({std::string(kHang), fmt::format("hang: {}, {} times", silence_text, kMostHolds)});
  hold = Hold{state.weight_ppm, now + std::max<std::chrono::nanoseconds>(kShortestHold, 5 * silence.deadline())};
  state.weight_ppm = 0;
  state.reason = fmt::format("held at 0: {} (time {} of {})", silence_text, holds, kMostHolds);
  return true;
}

bool Machine::give_up_waiting(Time now) {
  if (step().is_pause() || waits_for_others || now - step_since < step().duration + spec.certify.max_step_duration) return false;
  state.phase = Phase::kInconclusive;
  std::string why = judge.held(age(now));
  if (why.empty()) why = judge.has_step_answers() ? "not certified" : "insufficient data: no answer of the canary";
  state.reason = fmt::format("step {} of {}: {} within {}; the weight is held, resume to continue waiting", state.step + 1,
                             spec.steps.size(), why, config::print_duration(spec.certify.max_step_duration));
  return true;
}

/// What the steps up to the current one have set.
uint32_t Machine::planned_weight() const {
  uint32_t weight = 0;
  for (int i = 0; i <= state.step; ++i) weight = std::max(weight, spec.steps[static_cast<size_t>(i)].weight_ppm);
  return weight;
}

/// The plan goes on from its last step that is not above the weight set by hand; that weight stays until the next step.
void Machine::follow_manual_weight(Time now) {
  const uint32_t weight = state.weight_ppm;
  int index = 0;
  for (int i = 0; i <= last_step(); ++i)
    if (!spec.steps[static_cast<size_t>(i)].is_pause() && spec.steps[static_cast<size_t>(i)].weight_ppm <= weight) index = i;
  enter_step(index, now);
  if (weight == 0) return;  // nothing could be certified at 0: the step sets its own
  state.weight_ppm = weight;
  judge.begin_step(weight, /*shadow_step=*/false);
}

VerdictRecord Machine::explain() const {
  if (state.cause == kHang)
    return {.guard = std::string(kHang),
            .question = VerdictRecord::Question::kSilence,
            .trip_value = static_cast<double>(holds),
            .events = silences};
  if (state.phase == Phase::kSucceeded || state.cause == kAborted) return {};
  return judge.record();
}

void Machine::fill(Report& report) const {
  report.state = state;
  judge.fill(report, last_age);
  if (waits_for_others && !may_promote && state.phase == Phase::kProgressing)
    report.note = "every step has passed; it is promoted once no other rollout of the service runs, or by hand";
  if (capacity < state.weight_ppm)
    report.note =
        fmt::format("{} % of {} %: the canary's healthy endpoints carry no more", print_weight(capacity), print_weight(state.weight_ppm));
  else if (waits_for_capacity && state.phase == Phase::kProgressing)
    report.note = fmt::format("step {} of {} is done; the canary's healthy endpoints carry {} %, and the next step has {} %",
                              state.step + 1, spec.steps.size(), print_weight(capacity), print_weight(weight_of(state.step + 1)));
  report.step_seconds = std::max(0.0, std::chrono::duration<double>(last_age - age(step_since)).count());
  if (hold || (state.phase != Phase::kProgressing && state.phase != Phase::kBaking)) return;
  const auto left = [&](std::chrono::nanoseconds whole) {
    return std::max(0.0, std::chrono::duration<double>(whole).count() - report.step_seconds);
  };
  if (state.phase == Phase::kBaking) {
    report.step_eta_seconds = left(spec.bake);
  } else if (step().until == Step::Until::kDuration) {
    report.step_eta_seconds = left(step().duration);
  } else if (step().until == Step::Until::kCertified) {
    const double shown = std::ranges::min(report.certificates, {}, &Certificate::progress).progress;
    if (shown > 0) report.step_eta_seconds = report.step_seconds * std::max(0.0, 1 - shown) / shown;  // evidence grows with the answers
  }
}

Status Machine::refuse_beside_others() const {
  return Error{Code::kFailedPrecondition,
               fmt::format("rollout '{}' would get all requests while another one of the service runs: promote it, "
                           "which ends the other, or wait for its end",
                           state.id)};
}

Status Machine::refuse_beyond_capacity(uint32_t weight_ppm) const {
  if (weight_ppm <= capacity) return {};
  return Error{Code::kFailedPrecondition,
               fmt::format("the healthy endpoints of version '{}' carry {} %, not {} %: add some, or start with capacity: off",
                           state.canary, print_weight(capacity), print_weight(weight_ppm))};
}

Status Machine::refuse(std::string_view command) const {
  return Error{Code::kFailedPrecondition, fmt::format("rollout '{}' is {}: cannot {}", state.id, phase_name(state.phase), command)};
}

}  // namespace serin::rollout
