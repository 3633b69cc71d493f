// paddable_proof.h: what the tests of prove_paddable ask of a graph with the open dimension 's'.
#pragma once

#include <string>

#include "runtime/graph/proofs/paddable.h"
#include "tests/runtime/graph/graphs.h"

namespace serin::graph {

inline Paddable proof_of(const std::string& text) {
  const Paddable proof = prove_paddable(graph_of(text), "s");
  EXPECT_EQ(proof.yes, proof.why_not.empty());
  return proof;
}

/// Rows of `rows` that the mask counts, added up: right only where the rest is finite.
inline const char* const kPooled =
    "mc = Unsqueeze(m, axes=[2])\nkept = Mul(rows, mc)\nsum = ReduceSum(kept, axes=[1], keepdims=0)\nreturn sum\n";

}  // namespace serin::graph
