// window.h: makes the sliding window of convolutions and pools explicit.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"

namespace serin::graph {

struct Window {
  std::vector<int64_t> kernel, strides, dilations;  ///< one for each spatial axis
  std::vector<int64_t> pads;                        ///< begins, then ends; empty if auto_pad needs a dimension that is still unknown
  Dims output;                                      ///< spatial dimensions of the result
};

/// Resolves strides, dilations, pads, auto_pad and ceil_mode of a Conv or pool node over `spatial` dimensions. `kernel`: the weight's
/// spatial dimensions; empty: the attribute kernel_shape. Refuses an invalid window, without the node's name: "stride 0 is not positive".
Result<Window> resolve_window(const Node& node, std::span<const Dim> spatial, std::vector<int64_t> kernel);

/// The same for a ConvTranspose, whose windows lie over its result. output_padding adds to the end; output_shape sets the size, and the
/// pads follow from it. `kernel` is the weight's.
Result<Window> resolve_transposed_window(const Node& node, std::span<const Dim> spatial, std::vector<int64_t> kernel);

}  // namespace serin::graph
