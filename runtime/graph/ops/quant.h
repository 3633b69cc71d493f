// quant.h: the shape rules of products and convolutions for operators whose operands stand in other places.
#pragma once

#include "runtime/graph/ops/infer.h"

namespace serin::graph {

inline constexpr size_t kNoOperand = static_cast<size_t>(-1);

/// matmul.cc: [..., m, k] x [..., k, n] the NumPy way.
Result<Dims> matmul_shape(const Context& c, const Dims& a, const Dims& b);
/// conv_pool.cc: the result of convolving operand `x` with operand `weight`; attributes as Conv has them, and channels_last.
Status infer_conv_of(Context& c, size_t x, size_t weight, size_t bias, DType to);

}  // namespace serin::graph
