// rate_limit.h: Limits each caller's requests a second, with bursts of twice as many: one token bucket for each caller.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

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
  void forget_idle(Time now);

  const double rate_, burst_;
  std::mutex mutex_;
  std::map<std::string, Bucket> buckets_;  // guarded by mutex_
};

}  // namespace serin::router
