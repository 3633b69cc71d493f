// paddable.h: proves whether a request may be computed with a padded dimension.
//
//   const Paddable proof = prove_paddable(graph, "seq");     // a sentence of 20 tokens in a plan for 32, followed by zeros
//   if (proof.yes) ... the first 20 of each result equal the results of a plan for 20
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace serin::graph {

struct Paddable {
  bool yes = false;
  std::string why_not;  ///< "node 'pool' (ReduceMean) divides by the length"
  /// Inputs that say which elements count, along their last axes. The proof requires at least one element that is 1 in each row of each of
  /// them. If nothing counts in a row, padding weighs as much as its elements.
  std::vector<size_t> masks;
};

/// All inputs that have `symbol` on an axis are padded with zeros along it.
Paddable prove_paddable(const Graph& graph, const std::string& symbol);

}  // namespace serin::graph
