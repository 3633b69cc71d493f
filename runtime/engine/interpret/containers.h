// containers.h: computes the operators on sequences and optionals, and Identity of values that are not tensors.
#pragma once

#include <vector>

#include "runtime/base/result.h"
#include "runtime/engine/value.h"
#include "runtime/graph/graph.h"

namespace serin::engine {

/// `operands` by position; an absent one is an empty Value. Errors do not name the node; kTooLarge if a result exceeds `max_bytes`.
Result<std::vector<Value>> run_container(const graph::Node& node, std::vector<Value> operands, size_t max_bytes);

}  // namespace serin::engine
