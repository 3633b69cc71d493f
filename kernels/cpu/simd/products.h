// products.h: Products of matrices in f64 and in integers, as a table of plain functions for each instruction set.
//
// simd.h describes this interface.
#pragma once

#include <cstdint>

namespace serin::kernels::cpu {

/// y [rows, columns] = a times a panel of b: [k, panel columns], those after `columns` being zeros. Integers wrap.
template <class T>
struct ProductLoop {
  int64_t panel;  ///< columns
  /// Element (i, p) of a is a[i * a_row + p * a_column]. y's rows are `y_row` apart.
  void (*run)(const T* a, int64_t a_row, int64_t a_column, int64_t rows, const T* panel, int64_t k, T* y, int64_t y_row, int64_t columns);
};

struct ProductLoops {
  ProductLoop<double> f64;
  ProductLoop<uint32_t> u32;
  ProductLoop<uint64_t> u64;
};

extern const ProductLoops kProductsPortable;
extern const ProductLoops kProductsAvx2;  // x86-64 only, as the next
extern const ProductLoops kProductsAvx512;

}  // namespace serin::kernels::cpu
