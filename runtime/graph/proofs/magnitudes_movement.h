// magnitudes_movement.h: operators that move elements and change none, for Magnitudes.
#pragma once

#include <utility>
#include <vector>

#include "runtime/graph/proofs/magnitudes.h"

namespace serin::graph {

/// Where such pieces of a result of shape `dims` come from: each of them is a piece of one of these, or lies within one. None: not known, or another kind of
/// operator. All operands and results have shapes.
std::vector<std::pair<ValueId, Piece>> sources_of(const Graph& graph, const Node& node, const Dims& dims, Piece piece);

}  // namespace serin::graph
