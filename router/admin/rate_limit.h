// rate_limit.h: Limits each caller's requests a second, with bursts of twice as many: one token bucket for each caller.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "kernels/mutex.h"

namespace serin::router {

/// Thread-safe.
class RateLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit RateLimit(double per_second) : rate_(per_second), burst_(2 * per_second) {}

  /// False: the caller has used its share.
  bool take(const std::string& caller, Time now);

 private:
  struct Bucket {
    double left;
    Time filled;
  };
  void forget_idle(Time now) SERIN_REQUIRES(mutex_);

  const double rate_, burst_;
  Mutex mutex_;
  std::map<std::string, Bucket> buckets_ SERIN_GUARDED_BY(mutex_);
};

}  // namespace serin::router
