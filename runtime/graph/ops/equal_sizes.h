// equal_sizes.h: sizes of inputs that have several names and must be equal.
//
// Some exporters write no names for open sizes, so each open size of each input gets its own symbol. The length of a mask is then not that of the ids.
// Where two of them meet in a sum they must be equal, or one of them 1. The shape of the sum is `max(ids_d1, mask_d1)`, and no pass recognises
// attention. A reader that imports the model again, with one symbol for both, refuses only requests that broadcast size 1.
#pragma once

#include <map>
#include <string>

#include "runtime/graph/graph.h"

namespace serin::graph {

/// A symbol, and the one that stands for it.
using EqualSizes = std::map<std::string, std::string, std::less<>>;

/// `known`, and all pairs of symbols of inputs that meet in an elementwise operator of the graph. Of a pair the symbol that comes first in the inputs
/// stays. The symbol `batch` is in no pair. The graph has inferred shapes, and `known` is in use in it.
EqualSizes find_equal_sizes(const Graph& graph, EqualSizes known);

}  // namespace serin::graph
