// rate_limit.h: so many requests a second of one caller, and twice as many at once: a token bucket for each.
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

  /// False: the caller has had its share.
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
