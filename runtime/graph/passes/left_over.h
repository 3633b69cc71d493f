// left_over.h: lists the nodes of a quantised graph that still convert between floats and bytes after all passes, with reasons.
//
// Each of them costs a pass over memory, and f32 is the type of the nodes between two of them. The list explains to users why int8 can be
// slower than f32.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace serin::graph {

struct LeftOver {
  std::string node;
  Op op = Op::kQuantizeLinear;
  std::string why;  ///< "'softmax' (Softmax) has no form on bytes"
};

/// Returns QuantizeLinear and DequantizeLinear nodes, in order. Those at the inputs and outputs of the graph, which the model requires, are
/// included.
std::vector<LeftOver> left_over_quantisation(const Graph& graph);

}  // namespace serin::graph
