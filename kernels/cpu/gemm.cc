// gemm.cc: blocking around the micro-kernel. Rows of A are cut so that a block of them, for one part of k, stays in the L2 cache while the panels
// of B pass by it; B comes from farther away and each panel is read once for each block. Partial sums wait in y. The order of the additions depends
// on k alone, so equal inputs give equal bits, whatever the number of threads.

#include "kernels/cpu/gemm.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/parallel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kDepth = 896;  // of a part of k: a panel of 48 columns is 168 KiB then
constexpr int64_t kRows = 136;   // of a block of A: with 768 of k 408 KiB, which leave room for two panels of B in an L2 cache of 1 MiB

int64_t parts_of(int64_t size, int64_t largest) { return std::max<int64_t>(1, (size + largest - 1) / largest); }

/// Part `i` of `count` as equal ones of `size` as multiples of `step` allow: [begin, end).
struct Part {
  int64_t begin, end;
  Part(int64_t size, int64_t count, int64_t i, int64_t step) {
    const int64_t each = (size + count * step - 1) / (count * step) * step;
    begin = std::min(size, i * each), end = std::min(size, begin + each);
  }
};

struct Product {
  const DenseLoops& loops;
  int64_t m, n, k;
  MatrixView a;
  const float* packed;
  float* y;
  int64_t y_row;
  const GemmFinish* finish;

  /// Rows [rows.begin, rows.end) of panels [panels.begin, panels.end).
  void run(const Part& rows, const Part& panels) const {
    const int64_t width = loops.panel_width, depths = parts_of(k, kDepth);
    for (int64_t d = 0; d < depths; ++d) {
      const Part part(k, depths, d, 4);
      const bool last = d + 1 == depths;
      for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
        const int64_t j = panel * width;
        const float* const b = packed + j * k + part.begin * width;
        const bool more = panel + 1 < panels.end;
        GemmFinish moved;
        if (last && finish) {
          moved = *finish;
          if (moved.bias) moved.bias += rows.begin * moved.bias_row + j * moved.bias_column;
          if (moved.residual) moved.residual += rows.begin * moved.residual_row + j * moved.residual_column;
        }
        loops.gemm({.m = rows.end - rows.begin,
                    .n = std::min(width, n - j),
                    .k = part.end - part.begin,
                    .a = a.data + rows.begin * a.row + part.begin * a.column,
                    .a_row = a.row,
                    .a_column = a.column,
                    .b = b,
                    .b_row = width,
                    .y = y + rows.begin * y_row + j,
                    .y_row = y_row,
                    .accumulate = d > 0,
                    .next = more ? b + width * k : nullptr,
                    .finish = last && finish ? &moved : nullptr});
      }
    }
  }
};

}  // namespace

int64_t packed_size(const DenseLoops& loops, int64_t k, int64_t n) {
  const int64_t width = loops.panel_width;
  return (n + width - 1) / width * width * k;
}

void pack_b(const DenseLoops& loops, MatrixView b, int64_t k, int64_t n, float* packed) {
  const int64_t width = loops.panel_width;
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

void gemm(const Stream& stream, const DenseLoops& loops, int64_t m, int64_t n, int64_t k, MatrixView a, const float* packed, float* y,
          int64_t y_row, const GemmFinish* finish) {
  const Product product{loops, m, n, k, a, packed, y, y_row, finish};
  const int64_t panels = (n + loops.panel_width - 1) / loops.panel_width, blocks = parts_of(m, kRows);
  // With several workers, panels are dealt out in chunks, a few for each worker so that a slow one does not hold up the rest.
  const int64_t workers = stream.workers && m * n * k > 100'000 ? stream.workers->count() : 1;
  const int64_t chunks = workers == 1 ? 1 : std::min(panels, std::max<int64_t>(1, (3 * workers + blocks - 1) / blocks));
  const auto task = [&](int64_t i, int) { product.run(Part(m, blocks, i / chunks, 1), Part(panels, chunks, i % chunks, 1)); };
  if (workers == 1) {
    for (int64_t i = 0; i < blocks; ++i) task(i, 0);
    return;
  }
  parallel_for(stream, blocks * chunks, task);
}

}  // namespace serin::kernels::cpu
