// batch_curve.h: learns from live batches how long a batch takes, and so how many rows are worth taking.
//
// On a GPU, a batch of 32 takes hardly longer than a single request. A large model on a CPU takes 32 times as long, and waiting for a batch
// there gains nothing. Sizes are tried upwards when the queue offers them, as long as each gains at least 10 % per row over the previous
// size. Without a gain, requests run one by one, and no client waits for an experiment with a large batch. The time of an unseen size is
// predicted as a straight line from the next smaller size that was seen.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>

namespace serin::serving {

class BatchCurve {
 public:
  /// Sizes are powers of two: bucket k contains batches of up to 2^k rows; the last bucket also contains all larger batches.
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

  /// Whether batches of about that many rows were seen. Batches beyond the buckets never count as seen, because they may have any size.
  bool knows(int64_t rows) const { return rows <= rows_of(kBuckets - 1) && points_[bucket_of(rows)].seen > 0; }
  /// Predicted duration of a batch of that many rows; 0 if nothing is known.
  std::chrono::nanoseconds predict(int64_t rows) const {
    const size_t wanted = bucket_of(rows);
    for (size_t k = wanted + 1; k-- > 0;)
      if (points_[k].seen > 0)
        return std::chrono::nanoseconds(static_cast<int64_t>(points_[k].ns * static_cast<double>(1u << (wanted - k))));
    for (size_t k = wanted + 1; k < kBuckets; ++k)
      if (points_[k].seen > 0) return std::chrono::nanoseconds(static_cast<int64_t>(points_[k].ns));
    return {};
  }

  /// Rows to take when `waiting` are queued (at least 1), never over `max`.
  int64_t choose(int64_t waiting, int64_t max) const {
    const int64_t most = std::min(waiting, max);
    size_t best = 0;
    for (size_t k = 0; k <= bucket_of(most); ++k) {
      if (points_[k].seen < kTries) {
        const bool last_was_worth_it = k == 0 || best + 1 == k;
        if (last_was_worth_it) best = k;
        break;
      }
      // The rest would be padding, which is acceptable if it costs no more than a second batch for the last rows.
      const bool in_part = rows_of(k) > most;
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
