// pass.h: the interface of rewrites of a graph, and the runner that applies them in the order of list.cc.
//
//   PassOptions options{.evaluate = kernels, .disabled = {"fuse_gelu"}};
//   SERIN_TRY(const auto timings, run_passes(graph, options));
//
// A pass is pure: the same graph gives the same graph. After each pass that changed something, the runner infers the shapes again and
// verifies the graph. So an error names the pass that broke the graph, not the kernel that failed later.
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
  /// Returns whether something changed. Types of new values need not be set.
  virtual Result<bool> run(Graph& graph) const = 0;
};

/// Computes the results of a node whose operands are constants. Graphs know no kernels, so a caller that has kernels supplies this. An
/// error means that the node stays.
using Evaluate = std::function<Result<std::vector<ConstantPtr>>(const Graph&, NodeId)>;

struct PassOptions {
  Evaluate evaluate;                                                      ///< empty: only shape arithmetic is folded
  std::set<std::string, std::less<>> disabled;                            ///< names of passes that do not run
  std::function<void(const std::string& pass, const Graph&)> after_pass;  ///< after each pass that changed something
};

struct PassTiming {
  std::string name;
  double seconds = 0;  ///< includes the inference and verification after it
  bool changed = false;
};

/// Runs all passes once, in order. Shapes must be inferred already. kInvalidArgument if a disabled name is not the name of a pass.
Result<std::vector<PassTiming>> run_passes(Graph& graph, const PassOptions& options = {});

/// list.cc: the passes in their order.
std::vector<std::unique_ptr<Pass>> all_passes(const Evaluate& evaluate);

}  // namespace serin::graph
