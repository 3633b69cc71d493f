// space.h: Maps the number of an element to its address in each operand.
//
// A space is the collapsed shape of a result (kernels/indexing.h) with the strides of its operands, small enough to be a kernel's
// parameter. Division by a dimension is a multiplication with its reciprocal (Granlund and Montgomery, "Division by invariant integers
// using multiplication", 1994). A thread would spend more time on a division than on its element.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/float16.h"
#if !defined(__CUDACC_RTC__)  // code compiled at run time receives a space
#include "kernels/indexing.h"
#endif

namespace serin::kernels::cuda {

inline constexpr int kMaxRank = 12;  ///< Shape's

/// n / d and n % d for 32-bit n, d >= 1.
struct Divisor {
  uint32_t d = 1, multiplier = 0, shift = 0;

  Divisor() = default;
  explicit Divisor(uint32_t divisor) : d(divisor), shift(divisor > 1 ? 32 - std::countl_zero(divisor - 1) : 0) {
    multiplier = static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift) - d)) / d + 1);
  }
  SERIN_HD uint32_t divide(uint32_t n) const {
    const uint64_t high = (static_cast<uint64_t>(n) * multiplier) >> 32;
    return static_cast<uint32_t>((high + n) >> shift);
  }
};

/// i / d and i % d for i >= 0: by multiplication if i is known to stay below 2^31.
struct Division {
  int64_t d = 1;
  bool wide = false;
  Divisor fast;

  Division() = default;
  /// For all i < `limit`.
  Division(int64_t divisor, int64_t limit) : d(std::max<int64_t>(divisor, 1)), wide(limit > INT32_MAX || d > INT32_MAX) {
    if (!wide) fast = Divisor(static_cast<uint32_t>(d));
  }
  SERIN_HD int64_t quotient(int64_t i) const { return wide ? i / d : static_cast<int64_t>(fast.divide(static_cast<uint32_t>(i))); }
  SERIN_HD int64_t remainder(int64_t i) const { return i - quotient(i) * d; }
};

template <int kOperands>
struct Space {
  int rank = 0;
  bool wide = false;  ///< more elements than 32 bits count: plain division
  int64_t elements = 0;
  Divisor divisors[kMaxRank];
  int64_t dims[kMaxRank] = {};
  int64_t strides[kOperands][kMaxRank] = {};

  Space() = default;
#if !defined(__CUDACC_RTC__)
  static_assert(kMaxRank == Shape::kMaxRank);
  Space(const Shape& shape, const std::array<Strides, kOperands>& operand_strides) {
    const auto collapsed = collapse<kOperands>(shape, operand_strides);
    rank = static_cast<int>(collapsed.shape.rank());
    elements = shape.elements();
    wide = elements > INT32_MAX;
    for (int axis = 0; axis < rank; ++axis) {
      dims[axis] = collapsed.shape[static_cast<size_t>(axis)];
      if (!wide && dims[axis] > 0) divisors[axis] = Divisor(static_cast<uint32_t>(dims[axis]));
      for (int k = 0; k < kOperands; ++k) strides[k][axis] = collapsed.strides[static_cast<size_t>(k)][static_cast<size_t>(axis)];
    }
  }
#endif
  /// Every operand has the layout of the result, or is one element.
  bool is_dense() const {
    if (rank > 1) return false;
    for (int k = 0; k < kOperands; ++k) {
      if (strides[k][0] != 1 && strides[k][0] != 0) return false;
    }
    return true;
  }

  SERIN_HD void locate(int64_t i, int64_t (&at)[kOperands]) const { locate_in(rank, wide, i, at); }
  /// For callers with constant rank and width.
  SERIN_HD void locate_in(int axes, bool in_64_bits, int64_t i, int64_t (&at)[kOperands]) const {
    if (axes == 1) {
      for (int k = 0; k < kOperands; ++k) at[k] = i * strides[k][0];
      return;
    }
    for (int k = 0; k < kOperands; ++k) at[k] = 0;
    for (int axis = axes - 1; axis >= 0; --axis) {
      const int64_t next = in_64_bits ? i / dims[axis] : static_cast<int64_t>(divisors[axis].divide(static_cast<uint32_t>(i)));
      const int64_t index = i - next * dims[axis];
      for (int k = 0; k < kOperands; ++k) at[k] += index * strides[k][axis];
      i = next;
    }
  }
};

}  // namespace serin::kernels::cuda
