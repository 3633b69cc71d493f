// same.h: whether two graphs compute the same: the signatures of a SavedModel are often two names for one graph.
#pragma once

#include "runtime/graph/graph.h"

namespace serin::graph {

/// The same nodes on the same constants in the same order, whatever they are called. Inputs and outputs have the same names and types. Graphs
/// that compute the same in another way count as different.
bool same_graph(const Graph& a, const Graph& b);

}  // namespace serin::graph
