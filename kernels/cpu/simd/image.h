// image.h: the loops of image operators, compiled once for each instruction set, as a table of plain functions; the border that simd.h describes.
#pragma once

#include <cstdint>

namespace serin::kernels::cpu {

struct ImageLoops {
  /// y[i] = sum over k < count of weight[k * n + i] * x[index[k * n + i]].
  void (*resample_row)(const float* x, const int32_t* index, const float* weight, int64_t count, float* y, int64_t n);
  /// y[i] = sum over k < count of weight[k] * rows[k][i].
  void (*mix_rows)(const float* const* rows, const float* weight, int64_t count, float* y, int64_t n);
  /// y[i * stride] += x[i]; stride 1 or 2 fast.
  void (*add_strided)(const float* x, float* y, int64_t stride, int64_t n);
  /// y[i * y_row + j] = x[i + j * x_row] for i < rows, j < columns: four bytes an element.
  void (*transpose)(const float* x, int64_t x_row, float* y, int64_t y_row, int64_t rows, int64_t columns);
};

extern const ImageLoops kImagePortable;
extern const ImageLoops kImageAvx2;  // x86-64 only, as the next
extern const ImageLoops kImageAvx512;

}  // namespace serin::kernels::cpu
