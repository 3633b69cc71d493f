// fit_line_test.cc: times that follow a line are found again, and those that do not are smoothed.

#include "runtime/planner/fit_line.h"

#include <gtest/gtest.h>

#include <cmath>

namespace serin::planner {
namespace {

std::vector<Point> on_line(double a, double b, double c) {
  std::vector<Point> points;
  for (double flops = 1e4; flops < 1e10; flops *= 7)
    for (double bytes = 1e3; bytes < 1e8; bytes *= 11) points.push_back({{flops, bytes}, a * flops + b * bytes + c});
  return points;
}

TEST(TimeCurve, FindsALineAgain) {
  const TimeCurve curve(on_line(0.02, 0.1, 300));
  for (const Point& point : on_line(0.02, 0.1, 300)) EXPECT_NEAR(curve.ns(point.size), point.ns, 1e-6 * point.ns);
  EXPECT_NEAR(curve.ns({5e6, 3e4}), 0.02 * 5e6 + 0.1 * 3e4 + 300, 1);
}

TEST(TimeCurve, OnePointIsEnough) {
  const TimeCurve curve({{{1e6, 1e4}, 5000}});
  EXPECT_NEAR(curve.ns({1e6, 1e4}), 5000, 1);
  EXPECT_GT(curve.ns({1e7, 1e5}), 0);
}

TEST(TimeCurve, NothingIsNegative) {
  const TimeCurve curve({{{1e6, 1e4}, 9000}, {{1e7, 1e4}, 8000}, {{1e8, 1e4}, 7000}, {{1e6, 1e6}, 100}});
  for (double flops = 0; flops < 1e12; flops = flops * 10 + 1) EXPECT_GE(curve.ns({flops, 1e5}), 0) << flops;
}

TEST(TimeCurve, FollowsStepsOfSimilarSize) {
  std::vector<Point> points = on_line(0.02, 0.1, 300);
  for (Point& point : points)
    if (point.size.read > 1e6) point.ns *= 3;  // out of the cache
  const TimeCurve curve(points);
  for (const Point& point : points) EXPECT_NEAR(std::log2(curve.ns(point.size) / point.ns), 0, 0.25);
}

}  // namespace
}  // namespace serin::planner
