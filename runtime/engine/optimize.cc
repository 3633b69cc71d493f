// optimize.cc: hands the graph to the passes, with reference kernels to fold constants on.

#include "runtime/engine/optimize.h"

#include "runtime/engine/channel_blocks.h"
#include "runtime/graph/passes/pass.h"

namespace serin::engine {

Status optimize(graph::Graph& graph, const Folder& folder, const LoadOptions& options) {
  graph::PassOptions passes;
  passes.evaluate = [&folder](const graph::Graph& g, graph::NodeId node) { return folder.evaluate(g, node); };
  passes.disabled = options.disabled_passes;
  if (const auto ours = passes.disabled.find(kChannelBlocksPass); ours != passes.disabled.end()) passes.disabled.erase(ours);
  passes.after_pass = options.after_pass;
  SERIN_CHECK(graph::run_passes(graph, passes));
  return {};
}

}  // namespace serin::engine
