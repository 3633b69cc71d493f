// batch_curve.h: how long a batch takes, learned from live batches, and how many rows are therefore worth taking.
//
// On a GPU a batch of 32 takes hardly longer than one of 1; a large model on a CPU takes 32 times as long, and whoever waits for a batch there
// only waits. Sizes are tried upwards when the queue offers them, and only for as long as each was worth at least 10 % per row over the one
// before: where nothing is gained, requests go one by one and no client ever waits for an experiment with a large batch. What was not seen yet is
// predicted as a straight line from the next smaller size that was.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>

namespace serin::serving {

class BatchCurve {
 public:
  /// Sizes are powers of two: bucket k holds batches of up to 2^k rows, the last one all that are larger.
  static constexpr size_t kBuckets = 21;  // up to 1048576 rows
  static size_t bucket_of(int64_t rows) {
    return std::min(kBuckets - 1, static_cast<size_t>(std::bit_width(static_cast<uint64_t>(rows - 1))));
  }
  static int64_t rows_of(size_t bucket) { return int64_t{1} << bucket; }

  void learn(int64_t bucket_rows, std::chrono::nanoseconds took) {
    Point& point = points_[bucket_of(bucket_rows)];
    const auto ns = static_cast<double>(took.count());
    point.ns = point.seen == 0 ? ns : point.ns + kForget * (ns - point.ns);
    ++point.seen;
  }

  /// Whether batches of about so many rows were seen. Of those beyond the buckets nobody knows: they may have any size.
  bool knows(int64_t rows) const { return rows <= rows_of(kBuckets - 1) && points_[bucket_of(rows)].seen > 0; }
  /// What a batch of so many rows will take; 0 where nothing is known.
  std::chrono::nanoseconds predict(int64_t rows) const {
    const size_t wanted = bucket_of(rows);
    for (size_t k = wanted + 1; k-- > 0;)
      if (points_[k].seen > 0)
        return std::chrono::nanoseconds(static_cast<int64_t>(points_[k].ns * static_cast<double>(1u << (wanted - k))));
    for (size_t k = wanted + 1; k < kBuckets; ++k)
      if (points_[k].seen > 0) return std::chrono::nanoseconds(static_cast<int64_t>(points_[k].ns));
    return {};
  }

  /// Rows to take when `waiting` are there (at least 1), never over `max`.
  int64_t choose(int64_t waiting, int64_t max) const {
    const int64_t most = std::min(waiting, max);
    size_t best = 0;
    for (size_t k = 0; k <= bucket_of(most); ++k) {
      if (points_[k].seen < kTries) {
        const bool last_was_worth_it = k == 0 || best + 1 == k;
        if (last_was_worth_it) best = k;
        break;
      }
      const bool in_part = rows_of(k) > most;  // the rest would be padding: fine, where it costs no more than a batch for the last few
      if (points_[k].ns / static_cast<double>(std::min(rows_of(k), most)) <= per_row(best) * (in_part ? 1.0 : 0.9)) best = k;
    }
    return std::min(rows_of(best), most);
  }

 private:
  double per_row(size_t k) const { return points_[k].ns / static_cast<double>(rows_of(k)); }

  static constexpr double kForget = 0.1;
  static constexpr uint64_t kTries = 2;
  struct Point {
    double ns = 0;
    uint64_t seen = 0;
  };
  std::array<Point, kBuckets> points_{};
};

}  // namespace serin::serving
