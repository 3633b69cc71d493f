// machine.h: The state machine behind the facade (rollout.h).
//
//   Progressing --last step done--> Promoting --> Baking --bake over--> Succeeded
//     |  ^  |                          ^  (no bake: straight to Succeeded)
//     |  |  +--max step duration--> Inconclusive --resume--> Progressing
//     |  +--resume-- Paused <--pause(), a manual gate, set_weight(), a gate that an external system opens (confirm())
//     +--any guard's verdict, or abort(), from every phase that is not over--> RolledBack
//
// A step advances on its certificate, on its duration, or by a person; without an answer of the canary it never does. The weight rises when
// a step or the promotion begins, when a hold for silence ends and when a person raises it. Lowering it never waits. Time is an argument
// and monotonic; a time that goes backwards changes nothing.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/rollout/judge.h"
#include "router/rollout/report.h"
#include "router/rollout/silence_watch.h"

namespace serin::rollout {

inline constexpr std::string_view kHang = "hang", kAborted = "abort";  ///< causes from outside the judge's guards
inline constexpr std::string_view kConfirmRollout = "confirm-rollout", kConfirmIncrease = "confirm-traffic-increase",
                                  kConfirmPromotion = "confirm-promotion";  ///< causes while Paused: a gate
inline constexpr std::string_view kByHand = "by hand";                      ///< cause while Promoting: a person's promotion does not bake

struct Machine {
  Machine(Spec given, const Baseline& baseline, Time now);

  std::chrono::nanoseconds exact_age(Time now) const { return std::max(now, started) - started; }
  std::chrono::milliseconds age(Time now) const { return std::chrono::duration_cast<std::chrono::milliseconds>(exact_age(now)); }
  const Step& step() const { return spec.steps[static_cast<size_t>(state.step)]; }
  uint32_t planned_weight() const;
  int last_step() const { return static_cast<int>(spec.steps.size()) - 1; }

  std::string_view awaits() const;
  std::string_view gate_before(int index) const;
  uint32_t weight_of(int index) const;
  void wait_at(std::string_view gate, std::string_view place);
  void pass_gate(Time now);
  void enter_step(int index, Time now);
  bool advance_if_done(Time now);
  bool step_done(Time now) const;
  void begin_promotion(uint32_t weight_ppm, std::string reason, Time now);
  void finish(Time now);
  bool roll_back(Verdict verdict);
  bool watch_silence(Time now);
  bool give_up_waiting(Time now);
  bool continue_promotion(Time now);
  void follow_manual_weight(Time now);
  VerdictRecord explain() const;
  void fill(Report& report) const;
  Status refuse(std::string_view command) const;
  Status refuse_beside_others() const;
  Status refuse_beyond_capacity(uint32_t weight_ppm) const;

  Spec spec;
  State state;
  Judge judge;
  Time started, step_since;
  Time paused_since;
  std::chrono::milliseconds last_age{0};  // at the latest tick: the present in a report
  bool may_rise = true;                   // Rollout::let_rise()
  bool may_promote = true;                // Rollout::let_promote()
  uint32_t capacity = kAll;               // Rollout::set_capacity()
  bool waits_for_capacity = false;        // a step is done, and the next one is beyond it
  bool waits_for_others = false;          // every step has passed, and it may not be promoted
  bool manual_weight = false;             // set_weight() was used, and resume() not yet

  struct Hold {
    uint32_t weight_ppm;  // the weight before the hold, to be restored
    Time until;
  };
  SilenceWatch silence;
  std::optional<Hold> hold;  // the canary is silent and gets no traffic for a while
  int holds = 0;
  std::vector<DecidingEvent> silences;  // that led to holds
};

}  // namespace serin::rollout
