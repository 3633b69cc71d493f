// block.h: a graph made ready to be interpreted: the model's own, or the body of an If, Loop, Scan or SequenceMap.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/graph/graph.h"

namespace serin::engine {

/// Immutable, shared by all who run it.
struct Block {
  graph::Graph graph;
  std::vector<graph::NodeId> order;  ///< producers before readers
  std::map<graph::NodeId, std::vector<std::shared_ptr<const Block>>> bodies;

  /// Takes the graph as it is: the passes have run.
  static Result<std::shared_ptr<const Block>> make(graph::Graph graph);
};

/// What the interpreter computes itself, on values: control flow, sequences, optionals.
bool works_on_values(graph::Op op);
/// And Identity of what is no tensor.
bool works_on_values(const graph::Graph& graph, const graph::Node& node);

}  // namespace serin::engine
