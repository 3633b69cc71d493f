// tensor.h: The definition of a tensor for all of Serin. Header only; the one file of kernels/ that every folder may include.
//
// A TensorView borrows memory: dtype, shape (row-major, dense), data pointer. It owns nothing and is cheap to copy.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace serin {

enum class DType : uint8_t {
  kUndefined,
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kString,
  // Narrow types: one byte for each element in memory, with only the low bits used if the type has fewer than eight (see kernels/narrow.h).
  kFloat8E4M3FN,
  kFloat8E4M3FNUZ,
  kFloat8E5M2,
  kFloat8E5M2FNUZ,
  kFloat8E8M0,
  kFloat4E2M1,
  kInt4,
  kUInt4,
  kInt2,
  kUInt2,
};
inline constexpr DType kLastDType = DType::kUInt2;

/// Floats of 16, 32 or 64 bits, which kernels compute with. Narrower ones are only stored.
constexpr bool is_float(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

/// Bytes of one element; 0 for kUndefined and kString: a view of strings points to std::string objects.
constexpr size_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kInt8:
    case DType::kUInt8: return 1;
    case DType::kInt16:
    case DType::kUInt16:
    case DType::kFloat16:
    case DType::kBFloat16: return 2;
    case DType::kInt32:
    case DType::kUInt32:
    case DType::kFloat32: return 4;
    case DType::kInt64:
    case DType::kUInt64:
    case DType::kFloat64: return 8;
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat8E8M0:
    case DType::kFloat4E2M1:
    case DType::kInt4:
    case DType::kUInt4:
    case DType::kInt2:
    case DType::kUInt2: return 1;
    case DType::kUndefined:
    case DType::kString: return 0;
  }
  return 0;
}

/// Short lower-case name used in the graph's text form: "f32", "i64", "bool", "str".
constexpr std::string_view dtype_name(DType dtype) {
  constexpr std::string_view kNames[] = {"?",          "bool",   "i8",     "i16", "i32", "i64", "u8",       "u16",        "u32",
                                         "u64",        "f16",    "bf16",   "f32", "f64", "str", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2",
                                         "f8e5m2fnuz", "f8e8m0", "f4e2m1", "i4",  "u4",  "i2",  "u2"};
  return kNames[static_cast<size_t>(dtype)];
}

/// Maps a C++ element type to its DType (float16 types have no C++ type here: kernels/functors.h).
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::kBool;
  else if constexpr (std::is_same_v<T, int8_t>)
    return DType::kInt8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return DType::kInt16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::kInt32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::kInt64;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::kUInt8;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return DType::kUInt16;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return DType::kUInt32;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return DType::kUInt64;
  else if constexpr (std::is_same_v<T, float>)
    return DType::kFloat32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::kFloat64;
  else
    return DType::kUndefined;
}

/// Dimensions, outermost first. At most kMaxRank of them, stored inline: copying a Shape never allocates.
class Shape {
 public:
  static constexpr size_t kMaxRank = 12;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  /// Requires dims.size() <= kMaxRank (callers check outside input: see fits()).
  constexpr explicit Shape(std::span<const int64_t> dims) : rank_(std::min(dims.size(), kMaxRank)) {
    std::copy_n(dims.begin(), rank_, dims_.begin());
  }
  static constexpr bool fits(size_t rank) { return rank <= kMaxRank; }

  constexpr size_t rank() const { return rank_; }
  constexpr bool is_scalar() const { return rank_ == 0; }
  constexpr int64_t operator[](size_t axis) const { return dims_[axis]; }
  constexpr int64_t& operator[](size_t axis) { return dims_[axis]; }
  constexpr int64_t back() const { return dims_[rank_ - 1]; }
  constexpr std::span<const int64_t> dims() const { return {dims_.data(), rank_}; }
  constexpr auto begin() const { return dims_.begin(); }
  constexpr auto end() const { return dims_.begin() + static_cast<std::ptrdiff_t>(rank_); }
  constexpr void push_back(int64_t dim) { dims_[rank_++] = dim; }  // requires rank() < kMaxRank

  /// Product of the dimensions; 1 for a scalar. Requires that it fits (see checked_elements for outside shapes).
  constexpr int64_t elements() const {
    int64_t product = 1;
    for (const int64_t dim : dims()) product *= dim;
    return product;
  }

  /// Product of the dimensions; nothing if one is negative or the product exceeds int64.
  constexpr std::optional<int64_t> checked_elements() const {
    int64_t product = 1;
    bool overflow = false;
    for (const int64_t dim : dims()) {
      if (dim < 0) return std::nullopt;
      if (dim == 0) return 0;
    }
    for (const int64_t dim : dims()) overflow |= __builtin_mul_overflow(product, dim, &product);
    return overflow ? std::nullopt : std::optional<int64_t>(product);
  }

  /// "[2,3,224,224]"; "[]" for a scalar.
  std::string str() const {
    std::string text = "[";
    for (size_t axis = 0; axis < rank_; ++axis) text.append(axis ? "," : "").append(std::to_string(dims_[axis]));
    return text.append("]");
  }

  friend constexpr bool operator==(const Shape& a, const Shape& b) { return std::ranges::equal(a.dims(), b.dims()); }

 private:
  std::array<int64_t, kMaxRank> dims_{};
  size_t rank_ = 0;
};

struct TensorView {
  DType dtype = DType::kUndefined;
  Shape shape;
  void* data = nullptr;  ///< dense, row-major; aligned to 64 bytes if the engine allocated it

  int64_t elements() const { return shape.elements(); }
  size_t bytes() const { return static_cast<size_t>(shape.elements()) * dtype_size(dtype); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  template <class T>
  std::span<T> span() const {
    return {static_cast<T*>(data), static_cast<size_t>(elements())};
  }
};

}  // namespace serin
