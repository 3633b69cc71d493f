// strings.h: computes operators that only move or compare elements, on tensors of strings.
#pragma once

#include <span>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/engine/plan.h"
#include "runtime/graph/graph.h"

namespace serin::engine {

bool moves_strings(graph::Op op);

/// `operands` by position, null if absent. Errors do not name the node.
Result<std::vector<graph::ConstantPtr>> move_strings(const graph::Node& node, std::span<const graph::ConstantPtr> operands,
                                                     const Plan::Context& context);

}  // namespace serin::engine
