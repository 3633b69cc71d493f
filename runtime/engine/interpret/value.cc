// value.cc: allocates tensors during a run, and describes values as text.

#include "runtime/engine/value.h"

#include <fmt/format.h>

#include "runtime/base/aligned_buffer.h"

namespace serin::engine {

TensorView view_of(const graph::Constant& tensor) {
  const void* data = tensor.dtype == DType::kString ? static_cast<const void*>(tensor.strings.data()) : tensor.resident.get();
  return {tensor.dtype, tensor.shape, const_cast<void*>(data)};
}

std::string describe(const Value& value) {
  switch (value.kind) {
    case graph::ValueKind::kTensor:
      return value.tensor ? fmt::format("{}{}", dtype_name(value.dtype), value.tensor->shape.str()) : "nothing";
    case graph::ValueKind::kSequence: return fmt::format("sequence of {} {}", value.elements.size(), dtype_name(value.dtype));
    default: return value.elements.empty() ? "empty optional" : "optional with " + describe(value.elements.front());
  }
}

FreshTensor fresh_tensor(DType dtype, const Shape& shape) {
  FreshTensor fresh{std::make_shared<graph::Constant>(), {dtype, shape, nullptr}};
  fresh.tensor->dtype = dtype;
  fresh.tensor->shape = shape;
  if (dtype == DType::kString) {
    fresh.tensor->strings.resize(static_cast<size_t>(shape.elements()));
    fresh.view.data = fresh.tensor->strings.data();
  } else {
    auto memory = std::make_shared<AlignedBuffer>(fresh.view.bytes() + 1);  // never empty, so that its address is one
    fresh.view.data = memory->data();
    fresh.tensor->resident = std::shared_ptr<const std::byte>(memory, memory->data());
  }
  return fresh;
}

}  // namespace serin::engine
