// recent_requests.h: how many requests began in each of the last seconds. Every io thread counts, without a lock.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace serin::router {

/// Its mean does not depend on when, how often or by how many readers it is read.
class RecentRequests {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr int64_t kSeconds = 10;

  void count(Time now) {
    const auto second = static_cast<uint64_t>(second_of(now));
    std::atomic<uint64_t>& bucket = buckets_[second % buckets_.size()];
    uint64_t held = bucket.load(std::memory_order_relaxed);
    // Of a second that is long over: it begins anew.
    while (!bucket.compare_exchange_weak(held, held >> kCountBits == (second & kStamp) ? held + 1 : second << kCountBits | 1,
                                         std::memory_order_relaxed)) {
    }
  }

  /// The mean of the last ten whole seconds.
  double per_second(Time now) const { return static_cast<double>(sum(second_of(now) - kSeconds, kSeconds)) / kSeconds; }
  /// How many began in the current second and in the ten before it: never too late to see the first one.
  int64_t lately(Time now) const { return static_cast<int64_t>(sum(second_of(now) - kSeconds, kSeconds + 1)); }

 private:
  static constexpr int kCountBits = 32;
  static constexpr uint64_t kCount = (uint64_t{1} << kCountBits) - 1, kStamp = kCount;
  uint64_t sum(int64_t first, int64_t seconds) const {
    uint64_t sum = 0;
    for (int64_t second = first; second < first + seconds; ++second) {
      const uint64_t held = buckets_[static_cast<uint64_t>(second) % buckets_.size()].load(std::memory_order_relaxed);
      if (held >> kCountBits == (static_cast<uint64_t>(second) & kStamp)) sum += held & kCount;
    }
    return sum;
  }
  static int64_t second_of(Time now) { return std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count(); }

  std::array<std::atomic<uint64_t>, 16> buckets_{};  // the second in the upper half, its count in the lower one
};

}  // namespace serin::router
