// operators.h: the steps of a bucket with their cost, the most expensive first.
#pragma once

#include <string>
#include <vector>

#include "runtime/planner/answer.h"

namespace serin::planner {

struct Operator {
  std::string node, op, kernel;
  int64_t flops = 0, macs = 0, moved = 0;
  size_t scratch = 0;
  size_t live = 0;   ///< bytes of the arena that hold something during the step
  size_t place = 0;  ///< in the order of the run

  /// FLOPs for each byte moved; 0 for a step that moves nothing.
  double intensity() const { return moved > 0 ? static_cast<double>(flops) / static_cast<double>(moved) : 0; }
};

/// In the order of the run. An If counts as its more expensive body.
std::vector<Operator> operators(const Bucket& bucket);

}  // namespace serin::planner
