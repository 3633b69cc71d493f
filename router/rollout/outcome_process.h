// outcome_process.h: Tests whether outcomes that are reported for requests are worse on the canary than on stable, by more than a margin.
//
//   OutcomeProcess worse(/*margin=*/0.01);
//   worse.observe(/*canary=*/true, /*share=*/0.05, /*value=*/0, /*mean=*/0.93);
//   if (worse.e() >= trip_value) ...
//
// It stands in one place, where reports are counted (router/outcomes): outcome_guard.h takes its state from there.
#pragma once

#include "router/rollout/mixture_state.h"

namespace serin::rollout {

class OutcomeProcess {
 public:
  /// A mean that is lower by `margin` is tolerated: 0 <= margin < 1.
  explicit OutcomeProcess(double margin) : margin_(margin) {}

  /// One outcome: `value` is from 0 to 1, and 1 is good. `share`: the probability with which its request was drawn for the canary instead of
  /// stable, without 0 and 1. `mean`: of earlier outcomes. Any number from 0 to 1 that does not depend on this outcome keeps the bound.
  void observe(bool canary, double share, double value, double mean);
  double e() const { return state_.e(); }
  double margin() const { return margin_; }
  const MixtureState& state() const { return state_; }
  void restore(const MixtureState& state) { state_ = state; }

 private:
  double margin_;
  MixtureState state_;
};

}  // namespace serin::rollout
