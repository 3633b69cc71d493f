// image.h: what the shape rules of images share.
#pragma once

#include "runtime/graph/ops/infer.h"

namespace serin::graph {

/// The axes in attribute `axes`, in its order, each once; all axes if it is absent.
Result<std::vector<size_t>> listed_axes(const Context& c, size_t rank);

}  // namespace serin::graph
