// gemm.cc: blocking around the micro-kernel. A block of rows of A, for one part of k, stays in the L2 cache while the panels of B pass by
// it. B comes from farther away, and each panel is read once for each block. Partial sums wait in y. The order of the additions depends on
// k alone, so equal inputs give equal bits, whatever the number of threads.

#include "kernels/cpu/gemm.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/parallel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kDepth = 896;  // of a part of k: a panel of 48 columns is 168 KiB then
constexpr int64_t kTile = 8;     // rows: a multiple of those of a tile of dense_gemm.h, so that no block ends in a tile of fewer
constexpr int64_t kTasks = 4;    // for each worker
constexpr int64_t kRows = 136;   // of a block of A: with 768 of k 408 KiB, which leave room for two panels of B in an L2 cache of 1 MiB

int64_t parts_of(int64_t size, int64_t largest) { return std::max<int64_t>(1, (size + largest - 1) / largest); }

/// Part `i` of `count` as equal ones of `size` as multiples of `step` allow: [begin, end).
struct Part {
  int64_t begin, end;
  Part(int64_t size, int64_t count, int64_t i, int64_t step) {
    const int64_t steps = (size + step - 1) / step;
    begin = steps * i / count * step, end = std::min(size, steps * (i + 1) / count * step);
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
        const bool more = j + width < n;  // also behind the last of `panels`: that is mostly what the same worker does next
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
  const int64_t panels = (n + loops.panel_width - 1) / loops.panel_width, least = parts_of(m, kRows);
  const int64_t workers = stream.workers && m * n * k > 100'000 ? stream.workers->count() : 1;
  if (workers == 1) {
    for (int64_t i = 0; i < least; ++i) product.run(Part(m, least, i, kTile), Part(panels, 1, 0, 1));
    return;
  }
  // Equal tasks, as many for each worker, and some of them, so that a slow one does not hold up the rest: blocks, cut into chunks of panels.
  const int64_t blocks = least < workers ? least : parts_of(least, workers) * workers;
  int64_t chunks = std::min(panels, parts_of(kTasks * workers, blocks));
  if (blocks == 1 && chunks > workers) chunks -= chunks % workers;
  const int64_t tasks = blocks * chunks, each = tasks % workers == 0 ? tasks / workers : 0;
  parallel_for(stream, tasks, [&](int64_t i, int) {
    // Workers that keep pace go through neighbouring tasks each: the block stays in cache, and so does the panel that was asked for last.
    const int64_t task = each > 0 ? i % workers * each + i / workers : i;
    product.run(Part(m, blocks, task / chunks, kTile), Part(panels, chunks, task % chunks, 1));
  });
}

}  // namespace serin::kernels::cpu
