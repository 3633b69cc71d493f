#include "runtime/steps/pipeline/numbers.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/float16.h"

namespace serin::steps {
namespace {

template <class T>
float to_single(T value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<float>(value);
  else
    return kernels::to_float(value);
}

template <class T>
void copy_as_floats(const TensorView& tensor, std::vector<float>& to) {
  const auto from = tensor.span<const T>();
  to.resize(from.size());
  std::ranges::transform(from, to.begin(), to_single<T>);
}

/// False: no numbers.
bool copy_floats(const TensorView& tensor, std::vector<float>& to) {
  switch (tensor.dtype) {
    case DType::kFloat32: copy_as_floats<float>(tensor, to); return true;
    case DType::kFloat64: copy_as_floats<double>(tensor, to); return true;
    case DType::kFloat16: copy_as_floats<kernels::Half>(tensor, to); return true;
    case DType::kBFloat16: copy_as_floats<kernels::BFloat16>(tensor, to); return true;
    case DType::kBool:
    case DType::kUInt8: copy_as_floats<uint8_t>(tensor, to); return true;
    case DType::kInt8: copy_as_floats<int8_t>(tensor, to); return true;
    case DType::kInt16: copy_as_floats<int16_t>(tensor, to); return true;
    case DType::kUInt16: copy_as_floats<uint16_t>(tensor, to); return true;
    case DType::kInt32: copy_as_floats<int32_t>(tensor, to); return true;
    case DType::kUInt32: copy_as_floats<uint32_t>(tensor, to); return true;
    case DType::kInt64: copy_as_floats<int64_t>(tensor, to); return true;
    case DType::kUInt64: copy_as_floats<uint64_t>(tensor, to); return true;
    default: return false;
  }
}

}  // namespace

bool is_number(DType dtype) {
  std::vector<float> none;
  return copy_floats({dtype, {0}, nullptr}, none);
}

Result<std::vector<float>> floats_of(const TensorView& tensor) {
  std::vector<float> numbers;
  if (copy_floats(tensor, numbers)) return numbers;
  return Error{Code::kUnsupported, fmt::format("a tensor of {} has no numbers", dtype_name(tensor.dtype))};
}

Result<std::span<const float>> read_floats(const TensorView& tensor, std::vector<float>& copy) {
  if (tensor.dtype == DType::kFloat32) return tensor.span<const float>();
  SERIN_TRY(copy, floats_of(tensor));
  return std::span<const float>(copy);
}

}  // namespace serin::steps
