// bind_sizes.h: binds a graph to one set of sizes.
#pragma once

#include "runtime/base/result.h"
#include "runtime/engine/lower/fold.h"
#include "runtime/graph/graph.h"

namespace serin::engine {

/// Calls graph::bind, then computes what kernels can tell in addition. Sizes computed in floating point or permuted by a Transpose are
/// known only after that computation.
Result<graph::Graph> bind_sizes(const graph::Graph& graph, const graph::Bindings& bindings, const Folder& folder);

}  // namespace serin::engine
