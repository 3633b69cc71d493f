// magnitudes_movement.h: finds, for Magnitudes, the sources of elements that an operator moves without change.
#pragma once

#include <utility>
#include <vector>

#include "runtime/graph/proofs/magnitudes.h"

namespace serin::graph {

/// The sources of such pieces of a result of shape `dims`: each piece is a piece of one of these, or lies within one. None if unknown, or
/// for another kind of operator. All operands and results must have shapes.
std::vector<std::pair<ValueId, Piece>> sources_of(const Graph& graph, const Node& node, const Dims& dims, Piece piece);

}  // namespace serin::graph
