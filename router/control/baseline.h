// baseline.h: The recent latencies of the stable version; a rollout takes its quantiles from them when it starts.
//
// Two histograms alternate: the older one is dropped when the newer one is full. So between kTurn and 2 kTurn answers are known, and last
// week's are not. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>

#include "runtime/base/histogram.h"

namespace serin::router {

class RecentLatencies {
 public:
  static constexpr uint64_t kTurn = 50'000;

  void record(std::chrono::nanoseconds latency) {
    young_.record(latency);
    if (young_.count() < kTurn) return;
    old_ = young_;
    young_.clear();
  }
  void clear() {
    old_.clear();
    young_.clear();
  }
  LatencyHistogram snapshot() const {
    LatencyHistogram both = old_;
    both.merge(young_);
    return both;
  }

 private:
  LatencyHistogram old_, young_;
};

}  // namespace serin::router
