// even_chance.h: Tests whether something happens in more than half of the cases, given all earlier ones; keeps its latest cases.
//
// Against P(bad) = p a case has the likelihood ratio 2p if bad and 2 (1 - p) if not: expectation 1 at an even chance, less below. Half of the
// bets are on what hardly ever falls (p = 0.95), the others find growth in noise.
//
//   EvenChance up("res_memory", trip_value);
//   up.observe(/*bad=*/true, /*value=*/1.2e9, at);
//   if (up.tripped()) ...
#pragma once

#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "router/rollout/mixture_state.h"
#include "router/rollout/tape.h"
#include "router/rollout/verdict_record.h"

namespace serin::rollout {

/// The bare process.
class EvenChanceProcess {
 public:
  /// No bet exceeds the cap, so that growth that has ended is soon forgotten.
  explicit EvenChanceProcess(double cap) : cap_(cap) {}

  void observe(bool bad) {
    constexpr std::array<double, MixtureState::kAlternatives> kBad{0.95, 0.95, 0.95, 0.95, 0.88, 0.8, 0.72, 0.64};
    state_.observe(kAnswersPerStart, cap_, [&](size_t j) { return 2 * (bad ? kBad[j] : 1 - kBad[j]); });
  }
  double e() const { return state_.e(); }
  const MixtureState& state() const { return state_; }
  void restore(const MixtureState& state) { state_ = state; }

 private:
  double cap_;
  MixtureState state_;
};

class EvenChance {
 public:
  EvenChance(std::string name, double trip_value) : name_(std::move(name)), trip_value_(trip_value), process_(kCap * trip_value) {}

  /// `value`: what was measured, for display.
  void observe(bool bad, double value, std::chrono::milliseconds at) {
    tape_.add(process_, {.at = at, .arm = Arm::kCanary, .share = value, .bad = bad});
    process_.observe(bad);
    bad_ += bad;
    tape_.set_bits(bits());
  }
  bool tripped() const { return process_.e() >= trip_value_; }
  double bits() const { return std::log2(process_.e()); }
  double bits_to_trip() const { return std::log2(trip_value_); }
  uint64_t bad() const { return bad_; }
  uint64_t cases() const { return process_.state().count; }
  VerdictRecord record() const {
    return {.guard = name_,
            .question = VerdictRecord::Question::kUsage,
            .trip_value = trip_value_,
            .p0 = 0.5,
            .cap = kCap * trip_value_,
            .above = tape_.begin(process_).state(),
            .events = tape_.events()};
  }

 private:
  static constexpr double kCap = 64;  // times the trip value

  std::string name_;
  double trip_value_;
  EvenChanceProcess process_;
  Tape<EvenChanceProcess> tape_;
  uint64_t bad_ = 0;
};

}  // namespace serin::rollout
