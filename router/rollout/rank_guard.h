// rank_guard.h: One test of latency: a rank process with its name, its part of alpha and the record that explains it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "router/rollout/event_guard.h"
#include "router/rollout/rank_process.h"

namespace serin::rollout {

/// Adds one event to a process: the same for an active guard and for its record.
void observe(RankProcess& process, const DecidingEvent& event);

class RankGuard {
 public:
  RankGuard(std::string name, double tolerated_ratio, double trip_value);

  /// One unit's good answer, and how many limits it exceeds, or RankProcess::kFailed. one_sided: fast answers are no evidence, because some of
  /// the canary's are not counted. Returns whether the evidence has reached the trip value.
  bool observe(Arm arm, size_t rank, const Unit& unit, bool one_sided, std::chrono::milliseconds at);

  const std::string& name() const { return name_; }
  Evidence evidence() const;  ///< its events: answers slower than stable's p90
  VerdictRecord record() const;
  /// where: "at 5 % of traffic"
  Verdict verdict(std::string_view where) const;

 private:
  /// The latest ranks of one arm.
  class Latest {
   public:
    explicit Latest(size_t most) : most_(most) { ranks_.reserve(most); }
    void add(size_t rank);
    size_t slower_than(size_t limit) const;
    size_t size() const { return ranks_.size(); }

   private:
    size_t most_, oldest_ = 0;
    std::vector<uint8_t> ranks_;  // a ring once it is full
  };
  size_t most_telling_limit() const;
  bool is_one_sided(Arm arm, size_t rank, const Unit& unit) const;

  std::string name_;
  double tolerated_ratio_, trip_value_;
  RankProcess process_;
  bool one_sided_ = false;   // the latest event; a failure has no batch of its own to see it by
  double since_canary_ = 0;  // answers of stable since the canary's latest one
  std::array<uint64_t, 2> slow_{};
  std::array<Latest, 2> latest_{Latest(1000), Latest(50)};  // by arm
  Tape<MixtureState, 256> tape_;                            // long, as most of its events are stable's
};

}  // namespace serin::rollout
