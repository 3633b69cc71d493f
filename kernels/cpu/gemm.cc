// gemm.cc: blocking around the micro-kernel. k is cut so that one panel's slice stays in the L2 cache while all rows of A pass by it; partial sums
// wait in y. The order of the additions depends on the shape alone, so equal inputs give equal bits.

#include "kernels/cpu/gemm.h"

#include <algorithm>
#include <cstring>

namespace serin::kernels::cpu {

namespace {
constexpr int64_t kBlock = 512;  // rows of a panel slice: 64 KiB for panels of 32 floats
}

int64_t packed_size(const Simd& simd, int64_t k, int64_t n) {
  const int64_t width = simd.panel_width;
  return (n + width - 1) / width * width * k;
}

void pack_b(const Simd& simd, MatrixView b, int64_t k, int64_t n, float* packed) {
  const int64_t width = simd.panel_width;
  for (int64_t j = 0; j < n; j += width) {
    const int64_t columns = std::min(width, n - j);
    for (int64_t p = 0; p < k; ++p, packed += width) {
      const float* source = b.data + p * b.row + j * b.column;
      if (b.column == 1) {
        std::memcpy(packed, source, static_cast<size_t>(columns) * sizeof(float));
      } else {
        for (int64_t c = 0; c < columns; ++c) packed[c] = source[c * b.column];
      }
      std::fill(packed + columns, packed + width, 0.f);
    }
  }
}

void gemm(const Simd& simd, int64_t m, int64_t n, int64_t k, MatrixView a, const float* packed, float* y, int64_t y_row) {
  const int64_t width = simd.panel_width;
  for (int64_t p = 0; p == 0 || p < k; p += kBlock) {  // once even for k = 0: y is zeros then
    const int64_t depth = std::min(kBlock, k - p);
    for (int64_t j = 0; j < n; j += width) {
      const float* panel = packed + j * k + p * width;
      simd.gemm_panel(m, std::min(width, n - j), depth, a.data + p * a.column, a.row, a.column, panel, y + j, y_row, p > 0, nullptr);
    }
  }
}

}  // namespace serin::kernels::cpu
