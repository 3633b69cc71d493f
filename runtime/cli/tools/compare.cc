// compare.cc: compares two tensors in one walk, in double. The tolerance grows with the largest element of the tensor. A sum of large terms
// that cancel has an error of their size, however small its result.

#include "runtime/cli/tools/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/float16.h"
#include "runtime/base/utf8.h"

namespace serin::cli {
namespace {

double element(const TensorView& tensor, int64_t i) {
  switch (tensor.dtype) {
    case DType::kFloat32: return tensor.as<float>()[i];
    case DType::kFloat64: return tensor.as<double>()[i];
    case DType::kFloat16: return kernels::to_float(tensor.as<kernels::Half>()[i]);
    case DType::kBFloat16: return kernels::to_float(tensor.as<kernels::BFloat16>()[i]);
    case DType::kBool:
    case DType::kUInt8: return tensor.as<uint8_t>()[i];
    case DType::kInt8: return tensor.as<int8_t>()[i];
    case DType::kInt16: return tensor.as<int16_t>()[i];
    case DType::kUInt16: return tensor.as<uint16_t>()[i];
    case DType::kInt32: return tensor.as<int32_t>()[i];
    case DType::kUInt32: return tensor.as<uint32_t>()[i];
    case DType::kInt64: return static_cast<double>(tensor.as<int64_t>()[i]);
    case DType::kUInt64: return static_cast<double>(tensor.as<uint64_t>()[i]);
    default: return tensor.as<uint8_t>()[i];  // narrow types: their bits
  }
}

bool same_bytes(const TensorView& a, const TensorView& b, int64_t i) {
  const size_t size = dtype_size(a.dtype), offset = static_cast<size_t>(i) * size;
  return std::equal(a.as<std::byte>() + offset, a.as<std::byte>() + offset + size, b.as<std::byte>() + offset);
}

double largest_finite(const TensorView& tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i)
    if (const double x = std::abs(element(tensor, i)); std::isfinite(x)) largest = std::max(largest, x);
  return largest;
}

/// A text for messages, which may be long: a list of boxes.
std::string shown(const std::string& text) {
  constexpr size_t kMostBytes = 300;
  return text.size() <= kMostBytes ? text : fmt::format("{}...", utf8_prefix(text, kMostBytes));
}

/// Strings are equal or not.
Comparison compare_strings(const TensorView& actual, const TensorView& expected) {
  Comparison result;
  const auto a = actual.span<const std::string>(), b = expected.span<const std::string>();
  for (size_t i = 0; i < b.size(); ++i) {
    if (a[i] == b[i] || result.mismatches++ > 0) continue;
    result.why_not =
        fmt::format("first at {}: '{}', expected '{}'", position(expected.shape, static_cast<int64_t>(i)), shown(a[i]), shown(b[i]));
  }
  result.match = result.mismatches == 0;
  if (!result.match) result.why_not = fmt::format("{} of {} strings differ, {}", result.mismatches, b.size(), result.why_not);
  return result;
}

}  // namespace

std::string position(const Shape& shape, int64_t index) {
  Shape at = shape;
  for (size_t axis = shape.rank(); axis-- > 0; index /= shape[axis]) at[axis] = index % shape[axis];
  return at.str();
}

Comparison compare(const TensorView& actual, const TensorView& expected, const Tolerance& tolerance) {
  Comparison result;
  if (actual.dtype != expected.dtype) {
    result.why_not = fmt::format("dtype {}, expected {}", dtype_name(actual.dtype), dtype_name(expected.dtype));
    return result;
  }
  if (!(actual.shape == expected.shape)) {
    result.why_not = fmt::format("shape {}, expected {}", actual.shape.str(), expected.shape.str());
    return result;
  }
  if (expected.dtype == DType::kString) return compare_strings(actual, expected);
  const bool floats = is_float(expected.dtype);
  const double floor = tolerance.atol * (tolerance.absolute_atol ? 1.0 : floats ? largest_finite(expected) : 0);
  int64_t first = -1;
  double error_square = 0, square = 0;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double a = element(actual, i), b = element(expected, i);
    const bool finite = std::isfinite(a) && std::isfinite(b);
    const double error = finite ? std::abs(a - b) : 0;
    error_square += error * error;
    square += finite ? b * b : 0;
    if (error > result.max_absolute) {
      result.max_absolute = error;
      result.max_absolute_at = i;
    }
    if (b != 0 && error / std::abs(b) > result.max_relative) {
      result.max_relative = error / std::abs(b);
      result.max_relative_at = i;
    }
    const bool equal = !floats  ? same_bytes(actual, expected, i)
                       : finite ? error <= tolerance.rtol * std::abs(b) + floor
                                : a == b || (std::isnan(a) && std::isnan(b));
    if (equal) continue;
    if (result.mismatches++ == 0) first = i;
    result.not_finite = result.not_finite || !finite;
  }
  result.relative_l2 = square > 0 ? std::sqrt(error_square / square) : 0;
  result.match = result.mismatches == 0;
  if (!result.match)
    result.why_not = fmt::format("{} of {} elements differ, first at {}: {:.9g}, expected {:.9g}", result.mismatches, expected.elements(),
                                 position(expected.shape, first), element(actual, first), element(expected, first));
  return result;
}

}  // namespace serin::cli
