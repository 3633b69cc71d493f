// quant.h: shape rules of products and convolutions for operators with another order of operands.
#pragma once

#include "runtime/graph/ops/infer.h"

namespace serin::graph {

inline constexpr size_t kNoOperand = static_cast<size_t>(-1);

/// matmul.cc: [..., m, k] x [..., k, n] by the NumPy rule.
Result<Dims> matmul_shape(const Context& c, const Dims& a, const Dims& b);
/// conv_pool.cc: the result of convolving operand `x` with operand `weight`; attributes of Conv, and channels_last.
Status infer_conv_of(Context& c, size_t x, size_t weight, size_t bias, DType to);

}  // namespace serin::graph
