// fold.h: computes nodes whose operands are all known, on the reference kernels.
//
// Used twice: by the constant-folding pass, and by lower(), which knows more because the shapes are bound.
#pragma once

#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "runtime/base/result.h"
#include "runtime/graph/graph.h"

namespace serin::engine {

/// Shape, Size, ConstantOfShape, Range: no kernel computes them, only a Folder.
bool has_no_kernel(graph::Op op);

class Folder {
 public:
  Folder();
  ~Folder();

  /// The results of `node`, whose operands must be constants and whose result types must be known. kUnsupported where there is no way to
  /// compute it here (If, Loop, sequences) and kTooLarge above `max_bytes`: the node then stays as it is. Errors do not name it.
  static constexpr size_t kMaxBytes = size_t{64} << 20;  ///< of one result: folding must not blow a model up
  Result<std::vector<graph::ConstantPtr>> evaluate(const graph::Graph& graph, graph::NodeId node, size_t max_bytes = kMaxBytes) const;

 private:
  std::unique_ptr<kernels::Backend> reference_;
};

}  // namespace serin::engine
