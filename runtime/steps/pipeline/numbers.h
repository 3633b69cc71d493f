// numbers.h: tensors of any type of numbers as floats, for steps after a model.
#pragma once

#include <vector>

#include "kernels/tensor.h"
#include "runtime/base/result.h"

namespace serin::steps {

/// Whether floats_of() takes tensors of that type.
bool is_number(DType dtype);
/// Copies all elements in row-major order. kUnsupported: another type.
Result<std::vector<float>> floats_of(const TensorView& tensor);

}  // namespace serin::steps
