// pass.h: rewrites of a graph, and the runner that applies them in the order of list.cc.
//
//   PassOptions options{.evaluate = kernels, .disabled = {"fuse_gelu"}};
//   SERIN_TRY(const auto timings, run_passes(graph, options));
//
// A pass is pure: the same graph gives the same graph. After each one that changed something the runner infers the shapes again and verifies,
// so that an error names the pass that broke the graph, not the kernel that met it.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace serin::graph {

class Pass {
 public:
  virtual ~Pass() = default;
  virtual std::string_view name() const = 0;
  /// Whether something changed. Types of fresh values need not be set.
  virtual Result<bool> run(Graph& graph) const = 0;
};

/// The results of a node whose operands are constants. Graphs know no kernels: who has some gives this. An error means: leave the node.
using Evaluate = std::function<Result<std::vector<ConstantPtr>>(const Graph&, NodeId)>;

struct PassOptions {
  Evaluate evaluate;                                                      ///< empty: only shape arithmetic is folded
  std::set<std::string, std::less<>> disabled;                            ///< names of passes not to run
  std::function<void(const std::string& pass, const Graph&)> after_pass;  ///< after each pass that changed something
};

struct PassTiming {
  std::string name;
  double seconds = 0;  ///< with the inference and verification after it
  bool changed = false;
};

/// Runs all passes once, in order. Shapes must have been inferred. kInvalidArgument for a disabled name that is no pass's.
Result<std::vector<PassTiming>> run_passes(Graph& graph, const PassOptions& options = {});

/// list.cc: the passes in their order.
std::vector<std::unique_ptr<Pass>> all_passes(const Evaluate& evaluate);

}  // namespace serin::graph
