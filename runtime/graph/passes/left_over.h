// left_over.h: which nodes of a quantised graph still go between floats and bytes after all passes, and why: each costs a pass over memory, and what
// stands between two of them computes in f32. Users who find int8 slower than f32 find the reason here.
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

/// QuantizeLinear and DequantizeLinear nodes, in order. Those at the inputs and outputs of the graph are among them: the model asks for them.
std::vector<LeftOver> left_over_quantisation(const Graph& graph);

}  // namespace serin::graph
