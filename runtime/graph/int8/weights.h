// weights.h: constants of f32 as i8, symmetric around 0, with a scale for each output channel.
#pragma once

#include <span>

#include "runtime/graph/graph.h"

namespace serin::graph::int8 {

struct ByteWeight {
  ConstantPtr bytes, scales;
};

/// Of a weight whose output channels are its first axis. A scale is at least `least_scales` of its channel, where that is given: the bias that is added in
/// units of it must fit 32 bits.
ByteWeight by_rows(const ConstantPtr& weight, std::span<const double> least_scales = {});
/// Of a matrix [k, n] whose output channels are its columns, or of [n, k], to be transposed: [k, n] either way.
ByteWeight by_columns(const ConstantPtr& matrix, bool transposed, std::span<const double> least_scales = {});

}  // namespace serin::graph::int8
