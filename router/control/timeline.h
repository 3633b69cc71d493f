// timeline.h: The course of a rollout, second by second, for the dashboard's curves.
//
//   timeline.clear(now);                                      // a rollout starts
//   timeline.add(weights, stable, canary, evidence, now);     // at any rate
//
// Its size is bounded: when it is full, every other point is removed, and the interval between points doubles.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "router/control/recent_answers.h"
#include "router/rollout/rollout.h"

namespace serin::router {

/// Not thread-safe; readers get a copy.
class Timeline {
 public:
  static constexpr size_t kMostPoints = 600;
  static constexpr size_t kMostGuards = 64;
  static constexpr std::chrono::seconds kFinest{1};

  struct Point {
    std::chrono::milliseconds at{0};  ///< since clear()
    uint32_t weight_ppm = 0, shadow_ppm = 0;
    AnswerSummary stable, canary;
  };
  struct Guard {
    double bits_to_trip = 0;
    std::vector<float> bits;  ///< one for each point
  };

  void clear(rollout::Time now);
  /// Does nothing if the previous point is too recent, unless weights have changed.
  void add(Point point, const std::vector<rollout::Evidence>& evidence, rollout::Time now);

  const std::vector<Point>& points() const { return points_; }
  const std::map<std::string, Guard>& guards() const { return guards_; }

 private:
  void thin_out();

  rollout::Time begun_{}, next_{};
  std::chrono::nanoseconds interval_ = kFinest;
  std::vector<Point> points_;
  std::map<std::string, Guard> guards_;
};

}  // namespace serin::router
