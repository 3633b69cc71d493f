// magnitudes_movement.h: finds, for Magnitudes, the sources of elements that an operator moves without change.
#pragma once

#include <utility>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/proofs/piece.h"

namespace serin::graph {

using Sources = std::vector<std::pair<ValueId, Piece>>;

// The sources of such pieces of a result of shape `dims`, by the kind of operator. Each piece is a piece of one of these, or lies within one.
// None if unknown. All operands and results must have shapes.
Sources sources_of_reshape(const Graph& graph, const Node& node, const Dims& dims, Piece piece);
Sources sources_of_transpose(const Graph& graph, const Node& node, const Dims& dims, Piece piece);
Sources sources_of_split(const Graph& graph, const Node& node, const Dims& dims, Piece piece);
Sources sources_of_slice(const Graph& graph, const Node& node, const Dims& dims, Piece piece);
Sources sources_of_concat(const Graph& graph, const Node& node, const Dims& dims, Piece piece);
Sources sources_of_gather(const Graph& graph, const Node& node, const Dims& dims, Piece piece);

}  // namespace serin::graph
