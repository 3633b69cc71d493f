// numbers.h: tensors of any type of numbers as floats, for steps after a model.
#pragma once

#include <span>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/base/result.h"

namespace serin::steps {

/// Whether floats_of() takes tensors of that type.
bool is_number(DType dtype);
/// Whether that is a type of whole numbers; bool is none.
inline bool is_whole_number(DType dtype) { return dtype >= DType::kInt8 && dtype <= DType::kUInt64; }
/// Copies all elements in row-major order. kUnsupported: another type.
Result<std::vector<float>> floats_of(const TensorView& tensor);

/// The same without a copy where the tensor has floats of 32 bits; otherwise `copy` holds them. The span borrows from either.
Result<std::span<const float>> read_floats(const TensorView& tensor, std::vector<float>& copy);

}  // namespace serin::steps
