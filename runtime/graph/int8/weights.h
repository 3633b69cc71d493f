// weights.h: converts constants of f32 to i8, symmetric around 0, with a scale for each output channel.
#pragma once

#include <span>

#include "runtime/graph/graph.h"

namespace serin::graph::int8 {

struct ByteWeight {
  ConstantPtr bytes, scales;
};

/// Converts a weight whose output channels are its first axis. If `least_scales` is given, each scale is at least that of its channel: the
/// bias is added in units of the scale and must fit 32 bits.
ByteWeight by_rows(const ConstantPtr& weight, std::span<const double> least_scales = {});
/// Converts a matrix [k, n] whose output channels are its columns, or [n, k] if `transposed`. The result is always [k, n].
ByteWeight by_columns(const ConstantPtr& matrix, bool transposed, std::span<const double> least_scales = {});

}  // namespace serin::graph::int8
