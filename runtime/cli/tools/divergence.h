// divergence.h: Finds where two versions of a model begin to differ: the first nodes that give other results from equal inputs.
//
//   SERIN_TRY(const Pairing pairing, pair_nodes(stable, canary));
//   show_all_results(stable, pairing.first);             // each result is an output from now on; the same for the canary
//   ... run both on the same inputs ...
//   const Divergence found = find_divergence(pairing, stable, canary, results, tolerance);
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cli/tools/compare.h"
#include "runtime/engine/value.h"
#include "runtime/graph/graph.h"

namespace serin::cli {

/// A result that both versions compute.
struct ResultPair {
  graph::NodeId first_node = graph::kNone, second_node = graph::kNone;
  graph::ValueId first = graph::kNone, second = graph::kNone;
};

struct Pairing {
  std::vector<ResultPair> results;         ///< tensors, in the order in which the first model computes them
  size_t only_first = 0, only_second = 0;  ///< nodes without a partner
  bool by_name = true;                     ///< else by their places, because the names have little in common
};

/// Two nodes are partners if they compute the same operator and their results have the same name. If fewer than half are, and both models
/// are the same operators in the same order, then by that order. kCorrupt: a graph has a cycle.
Result<Pairing> pair_nodes(const graph::Graph& first, const graph::Graph& second);

/// Makes these results the outputs of the graph, in this order, and after them the outputs that it had.
void show_all_results(graph::Graph& graph, std::span<const graph::ValueId> results);

/// One weight, or other constant, of a node.
struct WeightDifference {
  std::string name;
  Comparison comparison;
};

/// A node that gives another result although no input of it differs.
struct Origin {
  std::string node, op, result;
  Shape shape;
  Comparison comparison;
  std::vector<WeightDifference> weights;  ///< those that differ
  std::vector<std::string> attributes;    ///< names of those that differ
  bool after_unpaired = false;            ///< an input comes from nodes that only one version has
};

struct Divergence {
  size_t equal = 0, different = 0;        ///< results
  std::vector<WeightDifference> weights;  ///< all that differ, also where no result does
  std::vector<Origin> origins;            ///< in the order in which the first model computes them
};

/// `first_values`, `second_values`: of the pairs, in their order. Weights are compared without a tolerance.
Divergence find_divergence(const Pairing& pairing, const graph::Graph& first, const graph::Graph& second,
                           std::span<const engine::Value> first_values, std::span<const engine::Value> second_values,
                           const Tolerance& tolerance);

}  // namespace serin::cli
