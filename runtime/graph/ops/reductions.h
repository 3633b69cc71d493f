// reductions.h: lists the operators that reduce axes (Reduce*), which share operands and attributes.
#pragma once

#include "runtime/graph/op.h"

namespace serin::graph {

constexpr bool is_reduction(Op op) {
  switch (op) {
    case Op::kReduceL1:
    case Op::kReduceL2:
    case Op::kReduceLogSumExp:
    case Op::kReduceMax:
    case Op::kReduceMean:
    case Op::kReduceMin:
    case Op::kReduceProd:
    case Op::kReduceSum:
    case Op::kReduceSumSquare: return true;
    default: return false;
  }
}

}  // namespace serin::graph
