// cost.h: estimates the least arithmetic and memory traffic of each step of a plan.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/engine/plan.h"

namespace serin::engine {

struct Cost {
  /// A multiplication or an addition counts one (a multiply-add two), a function of one element counts one, and moving elements nothing.
  /// The count follows the definition of the operator, so that speeds can be compared; Winograd's convolution does fewer.
  int64_t flops = 0;
  int64_t macs = 0;   ///< multiply-adds of convolutions, products, attention and recurrent layers; each counts two in `flops`
  int64_t bytes = 0;  ///< every operand read once, every result written once

  Cost& operator+=(const Cost& other) {
    flops += other.flops;
    macs += other.macs;
    bytes += other.bytes;
    return *this;
  }
};

/// Sizes that depend on the data count at their bound; an If counts its more expensive body.
Cost cost_of(const Plan& plan, size_t step);
Cost cost_of(const Plan& plan);

}  // namespace serin::engine
