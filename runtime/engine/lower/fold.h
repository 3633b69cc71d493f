// fold.h: computes nodes whose operands are all known, with the reference kernels.
//
// Two callers use it: the constant-folding pass, and lower(), which knows more because the shapes are bound.
#pragma once

#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "runtime/base/result.h"
#include "runtime/graph/graph.h"

namespace serin::engine {

class Folder {
 public:
  Folder();
  ~Folder();

  /// Returns the results of `node`, whose operands must be constants and whose result types must be known. Errors do not name the node:
  /// kUnsupported if it cannot be computed here (If, Loop, sequences), kTooLarge above `max_bytes`. The node then stays as it is.
  static constexpr size_t kMaxBytes = size_t{64} << 20;  ///< limit for one result: folding must not inflate a model
  Result<std::vector<graph::ConstantPtr>> evaluate(const graph::Graph& graph, graph::NodeId node, size_t max_bytes = kMaxBytes) const;

 private:
  std::unique_ptr<kernels::Backend> reference_;
};

}  // namespace serin::engine
