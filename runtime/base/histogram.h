// histogram.h: counts durations in log-linear buckets, so that any quantile is known within 0.8 % from 1 us to 1 h.
//
// The method is that of HdrHistogram (Gil Tene): each power of two is divided into 128 equal parts. There are 2.9 k buckets in 23 KB.
// Nothing is allocated after construction, and merging is addition. One thread writes; copies may be read by any thread.
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>

namespace serin {

class LatencyHistogram {
 public:
  void record(std::chrono::nanoseconds duration, uint64_t times = 1) {
    counts_[index(duration.count())] += times;
    total_ += times;
  }
  void merge(const LatencyHistogram& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    total_ += other.total_;
  }
  void clear() { *this = LatencyHistogram(); }
  uint64_t count() const { return total_; }

  /// The smallest recorded value (upper edge of its bucket) such that at least a fraction q of all values do not exceed it; 0 when empty.
  std::chrono::nanoseconds quantile(double q) const {
    const double wanted = q * static_cast<double>(total_);
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (counts_[i] != 0 && static_cast<double>(seen) >= wanted) return std::chrono::nanoseconds(upper_edge(i));
    }
    return std::chrono::nanoseconds(0);
  }

 private:
  static constexpr int kSubBits = 7;      // 128 parts per power of two
  static constexpr int64_t kUnit = 1000;  // ns: the finest step is 1 us
  static constexpr int kPowers = 26;      // 2^(7+25) us is over an hour
  static constexpr size_t kParts = size_t{1} << kSubBits;

  static size_t index(int64_t nanoseconds) {
    const uint64_t units = nanoseconds <= 0 ? 0 : static_cast<uint64_t>(nanoseconds) / kUnit;
    const int power = units < kParts ? 0 : std::bit_width(units) - kSubBits;  // 0: exact microseconds
    if (power >= kPowers) return kParts * kPowers - 1;
    return power == 0 ? units : static_cast<size_t>(power) * kParts + ((units >> (power - 1)) - kParts);
  }
  static int64_t upper_edge(size_t i) {
    const size_t power = i / kParts, part = i % kParts;
    const uint64_t units = power == 0 ? part + 1 : (kParts + part + 1) << (power - 1);
    return static_cast<int64_t>(units) * kUnit;
  }

  std::array<uint64_t, kParts * kPowers> counts_{};
  uint64_t total_ = 0;
};

}  // namespace serin
