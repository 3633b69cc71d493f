// tensor_value.h: a tensor of a request, or of a step, as a value for engine::Model::run.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/engine/value.h"

namespace serin::cli {

/// Copies the tensor.
inline engine::Value value_of(const TensorView& tensor) {
  const engine::FreshTensor made = engine::fresh_tensor(tensor.dtype, tensor.shape);
  if (tensor.dtype == DType::kString)
    std::ranges::copy(tensor.span<const std::string>(), made.view.as<std::string>());
  else if (tensor.bytes() > 0)
    std::memcpy(made.view.data, tensor.data, tensor.bytes());
  return engine::Value::of(made.tensor);
}

}  // namespace serin::cli
