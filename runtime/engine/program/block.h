// block.h: a graph prepared for the interpreter: the model's own, or the body of an If, Loop, Scan or SequenceMap.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/graph/graph.h"

namespace serin::engine {

/// Immutable; all runs share it.
struct Block {
  graph::Graph graph;
  std::vector<graph::NodeId> order;  ///< producers before readers
  std::map<graph::NodeId, std::vector<std::shared_ptr<const Block>>> bodies;

  /// Takes the graph unchanged: the passes have run.
  static Result<std::shared_ptr<const Block>> make(graph::Graph graph);
};

/// Whether the interpreter itself computes the operator, on values: control flow, sequences, optionals, pictures.
bool works_on_values(graph::Op op);
/// The same for a node; also true for an Identity whose operand is not a tensor.
bool works_on_values(const graph::Graph& graph, const graph::Node& node);
/// Shape, Size, ConstantOfShape, Range: only a Folder (lower/fold.h) computes them, no kernel.
bool has_no_kernel(graph::Op op);

}  // namespace serin::engine
