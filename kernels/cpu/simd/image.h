// image.h: The loops of image operators and of those that move elements, as a table of plain functions for each instruction set.
//
// simd.h describes this interface.
#pragma once

#include <cstdint>

namespace serin::kernels::cpu {

struct ImageLoops {
  /// y[i] = sum over k < count of weight[k * n + i] * x[index[k * n + i]].
  void (*resample_row)(const float* x, const int32_t* index, const float* weight, int64_t count, float* y, int64_t n);
  /// y[i] = sum over k < count of weight[k * row + i] * x[index[k * row + i]], skipping weights of 0. Indices and weights are read in whole
  /// vectors.
  void (*gather)(const float* x, const int32_t* index, const float* weight, int64_t row, int64_t count, float* y, int64_t n);
  /// y[i] = sum over k < count of weight[k] * rows[k][i].
  void (*mix_rows)(const float* const* rows, const float* weight, int64_t count, float* y, int64_t n);
  /// y[i] += x[i].
  void (*add)(const float* x, float* y, int64_t n);
  /// y[i * parts + part] = x[part][i] for i < n: adjacent rows, `x_row` apart, become one.
  void (*interleave)(const float* x, int64_t x_row, int64_t parts, float* y, int64_t n);
  /// y[i * times + k] = x[i] for k < times, i < n.
  void (*repeat)(const float* x, int64_t times, float* y, int64_t n);
  /// y[i] = condition[i * c_step] ? a[i * a_step] : b[i * b_step]; steps are 0 or 1, elements have four bytes.
  void (*select)(const bool* condition, int64_t c_step, const float* a, int64_t a_step, const float* b, int64_t b_step, float* y,
                 int64_t n);
  void (*select_wide)(const bool* condition, int64_t c_step, const int64_t* a, int64_t a_step, const int64_t* b, int64_t b_step, int64_t* y,
                      int64_t n);  ///< the same for eight bytes
  /// y[i * y_row + j] = x[i + j * x_row] for i < rows, j < columns: four bytes an element, or two.
  void (*transpose)(const float* x, int64_t x_row, float* y, int64_t y_row, int64_t rows, int64_t columns);
  void (*transpose_half)(const int16_t* x, int64_t x_row, int16_t* y, int64_t y_row, int64_t rows, int64_t columns);
};

extern const ImageLoops kImagePortable;
extern const ImageLoops kImageAvx2;  // x86-64 only, as the next
extern const ImageLoops kImageAvx512;

}  // namespace serin::kernels::cpu
