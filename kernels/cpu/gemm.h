// gemm.h: Matrix multiplication in f32 over a packed B; the inner loop is kernels/cpu/simd/dense_gemm.h.
//
// B is packed into panels of loops.panel_width columns: [panel][k][panel_width], zeros after the last column. A is read in place, by
// strides.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cpu/simd/dense.h"

namespace serin::kernels::cpu {

/// A view of a matrix: element (i, j) is at data[i * row + j * column].
struct MatrixView {
  const float* data;
  int64_t row, column;
};

/// The number of floats of b [k, n] when packed.
int64_t packed_size(const DenseLoops& loops, int64_t k, int64_t n);
void pack_b(const DenseLoops& loops, MatrixView b, int64_t k, int64_t n, float* packed);

/// y [m, n] with rows y_row apart = a [m, k] * packed b [k, n], finished unless `finish` is null. Uses all workers of the stream.
void gemm(const Stream& stream, const DenseLoops& loops, int64_t m, int64_t n, int64_t k, MatrixView a, const float* packed, float* y,
          int64_t y_row, const GemmFinish* finish);

}  // namespace serin::kernels::cpu
