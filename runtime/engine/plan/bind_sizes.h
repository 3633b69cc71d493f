// bind_sizes.h: a graph for one set of sizes.
#pragma once

#include "runtime/base/result.h"
#include "runtime/engine/lower/fold.h"
#include "runtime/graph/graph.h"

namespace serin::engine {

/// graph::bind, and then as far as kernels can tell: sizes computed in floating point, or turned around by a Transpose, are known only once
/// somebody computes them.
Result<graph::Graph> bind_sizes(const graph::Graph& graph, const graph::Bindings& bindings, const Folder& folder);

}  // namespace serin::engine
