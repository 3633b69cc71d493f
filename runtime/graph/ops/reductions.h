// reductions.h: lists the operators that reduce axes (Reduce*), which share operands and attributes.
#pragma once

#include "runtime/graph/ops/families.h"

namespace serin::graph {

inline bool is_reduction(Op op) { return rules(op).infer == infer_reduce; }

}  // namespace serin::graph
