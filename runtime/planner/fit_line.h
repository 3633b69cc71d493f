// fit_line.h: fits times of steps, and smooths what is left.
#pragma once

#include <array>
#include <vector>

namespace serin::planner {

/// Size of a step. Kernels are faster or slower by shape, which these four numbers tell apart.
struct StepSize {
  double flops = 0;
  double read = 0, constants = 0, written = 0;  ///< bytes

  double bytes() const { return read + constants + written; }
};

struct Point {
  StepSize size;
  double ns = 0;
};

/// Time of steps of one kernel.
class TimeCurve {
 public:
  /// At least one point. Least squares of relative errors, no coefficient below 0.
  explicit TimeCurve(std::vector<Point> points);
  double ns(const StepSize& size) const;

 private:
  double line(const StepSize& size) const;

  std::vector<Point> points_;
  std::array<double, 3> factors_{};  ///< of FLOPs, of bytes, constant
};

}  // namespace serin::planner
