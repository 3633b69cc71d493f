// simd.h: The loops that are compiled once for each instruction set, as a table of plain functions.
//
// This is the interface between code that may use AVX and code that must not. Behind it (this folder) the algorithms are templates over a
// vector type V: vec_avx512.h, vec_avx2.h, vec_portable.h. Each isa_*.cc compiles all of them with its own flags. Only raw pointers cross
// the interface. The files behind it call no inline function that other files also call. The linker keeps one copy of such a function, and
// if that copy contained AVX-512 instructions the program would crash on an older machine. Shapes, broadcasting and choice are on this
// side, in kernels/cpu/*.cc.
#pragma once

#include <cstdint>

#include "kernels/op.h"

namespace serin::kernels::cpu {

/// y[i] = f(x[i]); x == y is allowed.
using UnaryLoop = void (*)(const float* x, float* y, int64_t n, float alpha, float beta);
/// y[i] = f(a[i], b[i]); a "scalar" operand is one value. y: float, or bool for the compare functions. y may be a or b.
using BinaryLoop = void (*)(const float* a, bool a_scalar, const float* b, bool b_scalar, void* y, int64_t n);
/// y[row] = reduction of x[row, 0..n).
using ReduceRowsLoop = void (*)(const float* x, float* y, int64_t rows, int64_t n);
/// y[column] = reduction of x[0..n, column], rows x_row apart.
using ReduceColumnsLoop = void (*)(const float* x, int64_t x_row, float* y, int64_t n, int64_t columns);
using CastLoop = void (*)(const void* x, void* y, int64_t n);

/// The input of one cell of a window for a vector of adjacent outputs. If bit i of `lanes` is set, lane i is element offset + i * stride of
/// a plane.
struct Tap {
  int64_t offset;     ///< may be outside the plane: then lane 0 is, too
  uint32_t lanes;     ///< the lanes inside the plane
  uint32_t elements;  ///< for stride 2: bits 2 * i of the lanes, and those between
};
struct Taps {
  const Tap* data;
  int64_t count;
  int64_t stride;  ///< between two lanes
};
/// Planes of equal size, `step` floats apart.
template <class T>
struct Planes {
  T* data;
  int64_t step;
};
/// Processing of a row of results: min(max(y + bias[row], low), high).
struct RowFinish {
  const float* bias;  ///< null: none
  float low, high;
};
using PoolLoop = void (*)(const Taps& taps, const float* counts, Planes<const float> x, Planes<float> y, int64_t planes, int n);

/// A weight of `bits` bits: `blocks` blocks of `block` elements in each column.
struct NBitsShape {
  int64_t bits, block, blocks;
};
/// Its columns, one after the other.
struct NBitsColumns {
  const uint8_t* weight;
  const float* scales;
  const uint8_t* zeros;  ///< null: the middle of the range
  int64_t count;
};

struct BlockedLoops;  // blocked.h
struct DenseLoops;    // dense.h
struct ImageLoops;    // image.h

struct Simd {
  // Loops with their own table, for the same instruction set.
  const BlockedLoops* blocked;  ///< over channel blocks
  const DenseLoops* dense;      ///< products and attention
  const ImageLoops* image;      ///< image operators, and operators that move elements

  /// Each of these returns null if there is no vector code.
  UnaryLoop (*unary)(UnaryFn fn);
  BinaryLoop (*binary)(BinaryFn fn);
  ReduceRowsLoop (*reduce_rows)(ReduceFn fn);
  ReduceColumnsLoop (*reduce_columns)(ReduceFn fn);
  CastLoop (*cast)(DType from, DType to);

  /// Rows of n values.
  void (*softmax_rows)(const float* x, float* y, int64_t rows, int64_t n, bool log);
  /// Over n elements that are `row` apart, for each column; y may be x.
  void (*softmax_columns)(const float* x, float* y, int64_t row, int64_t n, int64_t columns, bool log);
  /// The index of the largest (sign -1: the smallest) of n < 2^24 elements that are `row` apart, for each column; false if there is a NaN.
  bool (*arg_columns)(const float* x, int64_t row, int64_t n, int64_t columns, float sign, bool last, int64_t* y);
  /// y[row] = log of the sum of e^x[row, 0..n).
  void (*log_sum_exp_rows)(const float* x, float* y, int64_t rows, int64_t n);
  void (*layer_norm_rows)(const float* x, const float* scale, const float* bias, float* y, int64_t rows, int64_t n, float epsilon);
  /// y = (x - mean) * factor + bias.
  void (*normalize)(const float* x, float* y, int64_t n, float mean, float factor, float bias);

  /// Floats of a vector.
  int64_t width;
  /// y[plane, 0..n) = the maximum over the taps, or their sum divided by counts[0..n); n <= width.
  PoolLoop pool_max, pool_mean;
  /// y[plane, 0..n) = the sum over the taps t of weight[plane, t] * x, finished; n <= width.
  void (*depthwise)(const Taps& taps, const float* weight, const RowFinish& finish, Planes<const float> x, Planes<float> y, int64_t planes,
                    int n);
  /// panel[plane, cell, columns[k]...] = tap [cell, k] of each plane, for `chunks` vectors; columns ascend. Writes up to one vector after
  /// the end.
  void (*gather_columns)(const Taps& taps, const int64_t* columns, int64_t chunks, Planes<const float> x, int64_t planes, float* panel);

  /// Columns of one packed panel of B: [k][panel_width] floats, two vectors.
  int64_t panel_width;
  /// y[m, n] (+)= a[m, k] * panel[k, n], n <= panel_width, finished unless `finish` is null. a's element (i, p) is at a[i * a_row + p *
  /// a_column].
  void (*gemm_panel)(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_row, int64_t a_column, const float* panel, float* y,
                     int64_t y_row, bool accumulate, const RowFinish* finish);
  /// Weights of 4 or 8 bits whose blocks are multiples of two vectors. order: activations x [n] in the order of nbits_product, [blocks,
  /// block], and the sums of their blocks. product: y [rows, columns] of ordered activations. block: one block of any even length as
  /// floats, odd elements of 4 bits separately.
  void (*order_for_nbits)(const float* x, int64_t n, const NBitsShape& shape, float* to, float* sums);
  void (*nbits_product)(const NBitsShape& shape, const NBitsColumns& columns, const float* a, const float* sums, int64_t rows, float* y,
                        int64_t y_row);
  void (*nbits_block)(const uint8_t* from, int64_t block, int64_t bits, float scale, float zero, float* even, float* odd);
  /// y = alpha * y + bias + residual; either may be null, or one value for all.
  void (*add_terms)(float* y, int64_t n, float alpha, const float* bias, bool bias_scalar, const float* residual, bool residual_scalar);
};

extern const Simd kSimdPortable;
extern const Simd kSimdAvx2;  // x86-64 only, as the next
extern const Simd kSimdAvx512;

}  // namespace serin::kernels::cpu
