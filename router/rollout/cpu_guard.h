// cpu_guard.h: Does an answer of the canary cost much more CPU time than one of stable?
//
//   CpuGuard cpu(1.5, trip_value);
//   if (cpu.observe(canary, stable, at)) roll_back(cpu.verdict());
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>

#include "router/rollout/even_chance.h"
#include "router/rollout/event_guard.h"
#include "router/rollout/resources.h"

namespace serin::rollout {

/// Spent by the endpoints of one arm since the round before.
struct CpuSpent {
  double cpu_seconds = 0;
  double idle_seconds = 0;  ///< of these, what they would have spent without a request
  bool idle_known = true;
  double requests = 0;
  uint32_t endpoints = 0;
};

class CpuGuard {
 public:
  CpuGuard(double most_ratio, double trip_value) : most_ratio_(most_ratio), dearer_(kName, trip_value) {}

  /// Whether the endpoints of an arm export their CPU time at all.
  void note_exports(bool canary, bool stable) {
    canary_says_ = canary;
    stable_says_ = stable;
  }
  /// One round. Nothing: there is none before it to compare with. Returns whether to roll back.
  bool observe(const std::optional<CpuSpent>& canary, const std::optional<CpuSpent>& stable, std::chrono::milliseconds at);

  /// A quarter of the evidence: a reason to wait. Empty: none.
  std::string held() const;

  static constexpr const char* kName = "res_cpu";
  std::string name() const { return kName; }
  Evidence evidence() const;
  Verdict verdict() const;
  VerdictRecord record() const { return dearer_.record(); }
  ResourceLine line() const;

 private:
  /// Answers enough for one comparison.
  struct Block {
    CpuSpent canary, stable;
  };
  struct Ratio {
    double middle = 0, least = 0;
  };
  std::optional<Ratio> ratio() const;

  double most_ratio_;
  EvenChance dearer_;
  Block block_;
  std::deque<double> ratios_;  // logarithms of the latest
  double stable_cost_ = 0, canary_cost_ = 0;
  bool stable_says_ = false, canary_says_ = false, floor_unknown_ = false;
};

}  // namespace serin::rollout
