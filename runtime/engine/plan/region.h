// region.h: runs a group of nodes of a graph as one plan.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/engine/plan.h"
#include "runtime/engine/plan/runner.h"
#include "runtime/graph/graph.h"

namespace serin::engine {

struct Region {
  std::shared_ptr<const Plan> plan;
  std::vector<graph::ValueId> inputs, outputs;  ///< in the graph that contains the nodes
  std::unique_ptr<Runner> runner;
  const std::byte* arena = nullptr;  ///< the arena that `runner` is bound to
};

/// Plans `nodes` (in topological order) of `graph`, whose types are known numbers. Operands in `known` are constants of the plan. The
/// results are the values that other nodes read; null if there are none.
Result<std::unique_ptr<Region>> make_region(const graph::Graph& graph, std::span<const graph::NodeId> nodes,
                                            const std::map<graph::ValueId, graph::ConstantPtr>& known, const Plan::Context& context);

}  // namespace serin::engine
