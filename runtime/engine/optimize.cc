// optimize.cc: hands the graph to the passes, with reference kernels to fold constants on.

#include "runtime/engine/optimize.h"

#include <memory>
#include <utility>

#include "runtime/engine/channel_blocks.h"
#include "runtime/graph/passes/pass.h"

namespace serin::engine {

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const auto& pass : graph::all_passes({})) names.emplace_back(pass->name());
  names.emplace_back(kChannelBlocksPass);
  return names;
}

Status optimize(graph::Graph& graph, const Folder& folder, const LoadOptions& options) {
  graph::PassOptions passes;
  passes.evaluate = [&folder](const graph::Graph& g, graph::NodeId node) { return folder.evaluate(g, node); };
  passes.disabled = options.disabled_passes;
  if (const auto ours = passes.disabled.find(kChannelBlocksPass); ours != passes.disabled.end()) passes.disabled.erase(ours);
  passes.after_pass = options.after_pass;
  SERIN_CHECK(graph::run_passes(graph, passes));
  return {};
}

Status optimize_bodies(graph::Graph& graph, const Folder& folder, const LoadOptions& options) {
  LoadOptions quiet;
  quiet.disabled_passes = options.disabled_passes;
  for (const graph::NodeId id : graph.nodes()) {
    for (auto& shared : graph.node(id).bodies) {
      graph::Graph body = *shared;
      SERIN_CHECK(optimize_bodies(body, folder, quiet));
      const Status status = optimize(body, folder, quiet);
      if (status) shared = std::make_shared<const graph::Graph>(std::move(body));
      // A branch whose shapes contradict each other stays as it is: it may never be taken.
      if (!status && status.error().code != Code::kInvalidArgument)
        return status.error().in("a body of node '" + graph.node(id).name + "'");
    }
  }
  return {};
}

}  // namespace serin::engine
