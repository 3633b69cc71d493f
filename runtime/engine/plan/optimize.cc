// optimize.cc: runs the passes on a graph, with reference kernels to fold constants on.

#include "runtime/engine/optimize.h"

#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "runtime/engine/layout/channel_blocks.h"
#include "runtime/engine/layout/channels_last.h"
#include "runtime/engine/layout/pointwise_chains.h"
#include "runtime/graph/passes/pass.h"

namespace serin::engine {
namespace {

/// Passes that pay on a device only. kernels/README.md has the numbers.
constexpr std::string_view kForDevices[] = {"fuse_projections"};

}  // namespace

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const auto& pass : graph::all_passes({})) names.emplace_back(pass->name());
  names.emplace_back(kChannelBlocksPass);
  names.emplace_back(kChannelsLastPass);
  names.emplace_back(kPointwiseChainsPass);
  return names;
}

Status optimize(graph::Graph& graph, const Folder& folder, const LoadOptions& options) {
  graph::PassOptions passes;
  passes.evaluate = [&folder](const graph::Graph& g, graph::NodeId node) { return folder.evaluate(g, node); };
  passes.disabled = options.disabled_passes;
  for (const std::string_view ours : {kChannelBlocksPass, kChannelsLastPass, kPointwiseChainsPass}) {
    if (const auto disabled = passes.disabled.find(ours); disabled != passes.disabled.end()) passes.disabled.erase(disabled);
  }
  if (!options.device) passes.disabled.insert(std::begin(kForDevices), std::end(kForDevices));
  passes.after_pass = options.after_pass;
  SERIN_CHECK(graph::run_passes(graph, passes));
  return {};
}

namespace {

/// The first operand that a body reads as it is in every turn, and the body's input that it is.
std::pair<size_t, size_t> first_read(const graph::Node& node) {
  const auto count = [&](const char* attribute) { return static_cast<size_t>(node.integer(attribute, 0)); };
  switch (node.op) {
    case graph::Op::kIf: return {1, 0};
    case graph::Op::kLoop: return {2 + count("carried"), 2 + count("carried")};
    case graph::Op::kScan: {
      const size_t own = count("batched") != 0 ? 1 : 0, first = count("carried") + count("scanned");
      return {own + first, first};
    }
    case graph::Op::kSequenceMap: return {count("mapped"), count("mapped")};
    default: return {node.inputs.size(), 0};
  }
}

/// What a body reads and the passes made a constant (a transposed weight) is one inside, too, so that kernels can pack it.
void hand_constants_in(const graph::Graph& graph, const graph::Node& node, graph::Graph& body) {
  auto [operand, input] = first_read(node);
  for (; operand < node.inputs.size() && input < body.inputs().size(); ++operand, ++input) {
    const graph::ConstantPtr constant = graph.constant(node.inputs[operand]);
    if (!constant) continue;
    const graph::ValueId inside = body.inputs()[input];
    body.replace_uses(inside, body.add_constant(body.value(inside).name, constant));
  }
}

}  // namespace

Status optimize_bodies(graph::Graph& graph, const Folder& folder, const LoadOptions& options) {
  LoadOptions quiet;
  quiet.disabled_passes = options.disabled_passes;
  for (const graph::NodeId id : graph.nodes()) {
    for (auto& shared : graph.node(id).bodies) {
      graph::Graph body = *shared;
      hand_constants_in(graph, graph.node(id), body);
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
