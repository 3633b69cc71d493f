// key_gate.h: Selects the evidence if requests stick to an arm by a key.
//
// A user's requests fail together. So for each question a key counts until its first bad event, and its later answers, good or bad, are no
// evidence.
//
// The arm whose keys fail faster runs out of them sooner. Later failures then fall on the other arm, which may be the better one. So the
// share is counted in the unit, as everywhere: among the answers of the last minutes whose keys are still at risk.
//
//   KeyGate gate;                                            // one for each question
//   if (const auto counted = gate.pass(observation, unit, bad); bad && counted) guard.observe(arm, *counted, at);
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "router/rollout/key_filter.h"
#include "router/rollout/observation.h"
#include "router/rollout/representative.h"

namespace serin::rollout {

class KeyGate {
 public:
  /// The weight of the answer for this question; nothing if its key has had its bad event. Call once for every unit, good and bad. Without
  /// keys it returns the unit unchanged.
  std::optional<Unit> pass(const Observation& observation, const Unit& unit, bool bad) {
    if (!observation.key && !used_) return unit;
    used_ = true;
    const Unit weighed = unit.scaled(ratio());
    const bool at_risk = !observation.key || !failed_.has(*observation.key);
    remember(observation.arm, at_risk);
    if (!at_risk) return std::nullopt;
    if (bad && observation.key) failed_.add(*observation.key);
    return weighed;
  }

 private:
  struct Sums {
    double answers = 0, at_risk = 0;
  };
  static constexpr double kWindow = 4096;  // answers, after which the past counts half

  /// The canary's part at risk over stable's. It starts with one pseudo-answer at risk: while few are known the share errs upward.
  double ratio() const {
    const auto& [stable, canary] = sums_;
    if (stable.answers == 0) return 1;
    return (canary.at_risk + 1) / (canary.answers + 1) * stable.answers / std::max(stable.at_risk, 1.0);
  }
  void remember(Arm arm, bool at_risk) {
    Sums& sums = sums_[static_cast<size_t>(arm)];
    sums.answers += 1;
    sums.at_risk += at_risk;
    if (sums.answers < kWindow) return;
    sums.answers /= 2;
    sums.at_risk /= 2;
  }

  KeyFilter failed_;
  std::array<Sums, 2> sums_;
  bool used_ = false;
};

}  // namespace serin::rollout
