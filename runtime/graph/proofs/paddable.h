// paddable.h: whether a request may be computed with more along a dimension than it has.
//
//   const Paddable proof = prove_paddable(graph, "seq");     // a sentence of 20 tokens in a plan for 32, behind them zeros
//   if (proof.yes) ... the first 20 of each result are what a plan for 20 answers
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace serin::graph {

struct Paddable {
  bool yes = false;
  std::string why_not;  ///< "node 'pool' (ReduceMean) divides by the length"
  /// Inputs that say which elements count, along their last axes. The proof holds for requests in which each row of each of them has at least one element that is 1: where nothing counts,
  /// padding and elements weigh the same.
  std::vector<size_t> masks;
};

/// All inputs that have `symbol` on an axis are followed by zeros along it.
Paddable prove_paddable(const Graph& graph, const std::string& symbol);

}  // namespace serin::graph
