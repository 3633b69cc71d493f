// trend.h: A series of measurements in bounded memory, and how it grows: the slope with its lower bound, and whether it lasts.
//
//   Trend memory;
//   memory.add({.seconds = 5, .value = 1e9, .answers = 120});
//   if (const auto growth = memory.growth(0)) growth->least;
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace serin::rollout {

struct TrendPoint {
  double seconds = 0;  ///< since any moment
  double value = 0;
  double answers = 0;  ///< so far
};

struct Growth {
  double rise = 0;                  ///< from the first to the last block of the window
  double slope = 0;                 ///< a second
  double least = 0;                 ///< its lower bound at 99.9 %
  double first = 0, last = 0;       ///< means of these blocks
  double seconds = 0, answers = 0;  ///< between them
  bool slowing = false;             ///< the second half may have grown by less than 85 % of the first: warm-up, a cache that fills
  bool stopping = false;            ///< it has grown by less than half of it
};

class Trend {
 public:
  void add(const TrendPoint& point);
  void clear();
  /// Of the points after this share of them. Nothing: too few.
  std::optional<Growth> growth(double after) const;
  /// The largest rise from one point to a later one that is at most so many seconds, or so many answers, away.
  double largest_rise(double seconds, double answers) const;
  const std::vector<TrendPoint>& points() const { return points_; }

 private:
  std::vector<TrendPoint> points_;  // means of `stride_` measurements each
  TrendPoint pending_;              // the sum of those since the last point
  size_t stride_ = 1, pending_count_ = 0;
};

}  // namespace serin::rollout
