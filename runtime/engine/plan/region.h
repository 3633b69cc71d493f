// region.h: nodes in the middle of a graph, run as one plan.
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
  std::vector<graph::ValueId> inputs, outputs;  ///< of the graph that the nodes are from
  std::unique_ptr<Runner> runner;
  const std::byte* arena = nullptr;  ///< that `runner` is bound to
};

/// Plans `nodes` (in topological order) of `graph`, whose types are known numbers. Operands in `known` are constants of the plan; results are
/// what somebody else reads. Null where that is nothing.
Result<std::unique_ptr<Region>> make_region(const graph::Graph& graph, std::span<const graph::NodeId> nodes,
                                            const std::map<graph::ValueId, graph::ConstantPtr>& known, const Plan::Context& context);

}  // namespace serin::engine
