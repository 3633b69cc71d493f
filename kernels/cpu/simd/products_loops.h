// products_loops.h: the loops of products.h over compiler vectors of kBytes. Each file that includes this is compiled for another instruction set, so that
// nothing here may have external linkage.
#pragma once

#include "kernels/cpu/simd/products.h"

namespace serin::kernels::cpu {

namespace {

/// kRows rows of y by two vectors, which stay in registers over all of k.
template <class T, int kBytes, int kRows>
void product_tile(const T* a, int64_t a_row, int64_t a_column, const T* panel, int64_t k, T* y, int64_t y_row, int64_t columns) {
  using V __attribute__((vector_size(kBytes))) = T;
  constexpr int64_t kLanes = kBytes / static_cast<int64_t>(sizeof(T));
  V sums[kRows][2] = {};
  for (int64_t p = 0; p < k; ++p, panel += 2 * kLanes, a += a_column) {
    V left, right;
    __builtin_memcpy(&left, panel, sizeof left);
    __builtin_memcpy(&right, panel + kLanes, sizeof right);
    for (int i = 0; i < kRows; ++i) {
      const T factor = a[i * a_row];
      sums[i][0] += factor * left;
      sums[i][1] += factor * right;
    }
  }
  for (int i = 0; i < kRows; ++i, y += y_row) {
    const V both[2] = {sums[i][0], sums[i][1]};  // a copy: sums whose address is taken would lie in memory all the time
    if (columns == 2 * kLanes)
      __builtin_memcpy(y, both, sizeof both);
    else
      __builtin_memcpy(y, both, static_cast<unsigned long>(columns) * sizeof(T));
  }
}

template <class T, int kBytes, int kRows>
void product_rows(const T* a, int64_t a_row, int64_t a_column, int64_t rows, const T* panel, int64_t k, T* y, int64_t y_row,
                  int64_t columns) {
  int64_t i = 0;
  for (; i + kRows <= rows; i += kRows)
    product_tile<T, kBytes, kRows>(a + i * a_row, a_row, a_column, panel, k, y + i * y_row, y_row, columns);
  for (; i + 2 <= rows; i += 2) product_tile<T, kBytes, 2>(a + i * a_row, a_row, a_column, panel, k, y + i * y_row, y_row, columns);
  if (i < rows) product_tile<T, kBytes, 1>(a + i * a_row, a_row, a_column, panel, k, y + i * y_row, y_row, columns);
}

template <class T, int kBytes, int kRows>
constexpr ProductLoop<T> product_loop() {
  return {2 * kBytes / static_cast<int>(sizeof(T)), product_rows<T, kBytes, kRows>};
}

template <int kBytes, int kRows>
constexpr ProductLoops product_loops() {
  return {product_loop<double, kBytes, kRows>(), product_loop<uint32_t, kBytes, kRows>(), product_loop<uint64_t, kBytes, kRows>()};
}

}  // namespace

}  // namespace serin::kernels::cpu
