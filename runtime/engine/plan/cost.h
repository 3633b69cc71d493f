// cost.h: what a step of a plan costs at least, before any clock has looked: arithmetic and memory traffic.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/engine/plan.h"

namespace serin::engine {

struct Cost {
  /// Multiplications and additions count one each (a multiply-add is two), a function of one element counts one, moving elements nothing. Winograd's
  /// convolution does fewer than this says: it is the work of the definition, so that speeds can be compared.
  int64_t flops = 0;
  int64_t bytes = 0;  ///< every operand read once, every result written once

  Cost& operator+=(const Cost& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

/// Sizes that the data decides count at their bound; an If counts its costlier body.
Cost cost_of(const Plan& plan, size_t step);
Cost cost_of(const Plan& plan);

}  // namespace serin::engine
