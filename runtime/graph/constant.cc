// constant.cc: makes constants. Memory is aligned to 64 bytes, so that a kernel can read it with any vector instruction.

#include "runtime/graph/constant.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "kernels/weight_memory.h"

namespace serin::graph {
namespace {

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

std::shared_ptr<std::byte> allocate(size_t bytes) {
  return {kernels::allocate_weight(bytes), [bytes](std::byte* memory) { kernels::free_weight(memory, bytes); }};
}

template <class T>
void store(std::byte* memory, T value) {
  std::memcpy(memory, &value, sizeof value);
}

/// Towards 0; beyond the type its ends, and 0 for NaN, where a conversion of C++ is undefined: the number may come from a file.
template <class T>
T nearest(double value) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  if (value >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<T>(value);
}

std::shared_ptr<Constant> without_bytes(DType dtype, const Shape& shape) {
  auto constant = std::make_shared<Constant>();
  constant->dtype = dtype;
  constant->shape = shape;
  constant->id = next_id();
  return constant;
}

}  // namespace

std::shared_ptr<Constant> make_mutable_constant(DType dtype, const Shape& shape, std::byte** memory) {
  auto constant = without_bytes(dtype, shape);
  *memory = nullptr;
  if (const size_t bytes = constant->bytes(); bytes > 0) {
    auto owned = allocate(bytes);
    *memory = owned.get();
    constant->resident = std::move(owned);
  }
  return constant;
}

ConstantPtr make_constant(DType dtype, const Shape& shape, const void* bytes) {
  std::byte* memory = nullptr;
  auto constant = make_mutable_constant(dtype, shape, &memory);
  if (memory) std::memcpy(memory, bytes, constant->bytes());
  return constant;
}

ConstantPtr make_constant(std::span<const int64_t> values) {
  return make_constant(DType::kInt64, Shape{static_cast<int64_t>(values.size())}, values.data());
}

ConstantPtr make_constant(DType dtype, const Shape& shape, std::shared_ptr<const std::byte> data) {
  auto constant = without_bytes(dtype, shape);
  constant->resident = std::move(data);
  return constant;
}

ConstantPtr make_constant(DType dtype, const Shape& shape, Recipe recipe) {
  auto constant = without_bytes(dtype, shape);
  if (constant->bytes() == 0) return constant;
  const auto bytes = std::make_shared<const RecipeBytes>(constant->bytes(), std::move(recipe));
  if (constant->bytes() < kWorthARecipe)
    constant->resident = bytes->make();
  else
    constant->recipe = bytes;
  return constant;
}

ConstantPtr make_constant(DType dtype, const Shape& shape, std::shared_ptr<const RecipeBytes> recipe) {
  auto constant = without_bytes(dtype, shape);
  constant->recipe = std::move(recipe);
  return constant;
}

ConstantPtr in_memory(ConstantPtr constant) {
  if (!constant || !constant->recipe || constant->resident) return constant;
  auto held = std::make_shared<Constant>(*constant);
  held->resident = held->recipe->make();
  return held;
}

std::shared_ptr<const std::byte> RecipeBytes::make() const {
  const MutexLock lock(mutex_);
  if (first_) {
    made_ = first_;
    return std::move(first_);
  }
  if (auto made = made_.lock()) return made;
  auto memory = allocate(bytes_);
  if (const Status status = recipe_({memory.get(), bytes_}); !status) throw LostConstant(status.error());
  made_ = memory;
  return memory;
}

std::shared_ptr<const std::byte> RecipeBytes::if_made() const {
  const MutexLock lock(mutex_);
  return first_ ? first_ : made_.lock();
}

ConstantPtr make_scalar(DType dtype, double value) {
  std::byte* memory = nullptr;
  auto constant = make_mutable_constant(dtype, {}, &memory);
  switch (dtype) {
    case DType::kBool: store(memory, value != 0); break;
    case DType::kInt8: store(memory, nearest<int8_t>(value)); break;
    case DType::kInt16: store(memory, nearest<int16_t>(value)); break;
    case DType::kInt32: store(memory, nearest<int32_t>(value)); break;
    case DType::kInt64: store(memory, nearest<int64_t>(value)); break;
    case DType::kUInt8: store(memory, nearest<uint8_t>(value)); break;
    case DType::kUInt16: store(memory, nearest<uint16_t>(value)); break;
    case DType::kUInt32: store(memory, nearest<uint32_t>(value)); break;
    case DType::kUInt64: store(memory, nearest<uint64_t>(value)); break;
    case DType::kFloat32: store(memory, static_cast<float>(value)); break;
    case DType::kFloat64: store(memory, value); break;
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kUndefined:
    case DType::kString:
    default: return nullptr;
  }
  return constant;
}

namespace {

template <class T>
std::vector<int64_t> widen(const Constant& constant) {
  const auto elements = constant.span<T>();
  return {elements.begin(), elements.end()};
}

}  // namespace

std::optional<std::vector<int64_t>> integers_of(const Constant& constant) {
  switch (constant.dtype) {
    case DType::kBool:
    case DType::kUInt8: return widen<uint8_t>(constant);
    case DType::kInt8: return widen<int8_t>(constant);
    case DType::kInt16: return widen<int16_t>(constant);
    case DType::kUInt16: return widen<uint16_t>(constant);
    case DType::kInt32: return widen<int32_t>(constant);
    case DType::kUInt32: return widen<uint32_t>(constant);
    case DType::kInt64: return widen<int64_t>(constant);
    default: return std::nullopt;
  }
}

namespace {

/// An IEEE half: 1 sign, 5 exponent, 10 fraction bits.
double half_number(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  const double magnitude = exponent == 0x1f
                               ? (fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity())
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(fraction + 0x400, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

}  // namespace

std::optional<double> number_of(const Constant& constant) {
  if (constant.elements() != 1) return std::nullopt;
  if (constant.dtype == DType::kFloat16) return half_number(constant.span<uint16_t>()[0]);
  if (constant.dtype == DType::kBFloat16) return std::bit_cast<float>(uint32_t{constant.span<uint16_t>()[0]} << 16);
  if (constant.dtype == DType::kFloat32) return constant.span<float>()[0];
  if (constant.dtype == DType::kFloat64) return constant.span<double>()[0];
  const auto integer = integers_of(constant);
  if (!integer) return std::nullopt;
  return static_cast<double>(integer->front());
}

}  // namespace serin::graph
