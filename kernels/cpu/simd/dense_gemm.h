// dense_gemm.h: y[m, n] (+)= a[m, k] * b[k, n] for up to three vectors of columns.
//
// A tile of kRows rows x kVectors vectors of y stays in registers over the whole of k. Each step loads the vectors of b, which are in cache
// in reading order, and broadcasts one element of each row of a. Rows are distributed evenly, so that no tile has only one row. b is read
// from distant memory once. While the rows pass one panel, the next one is prefetched into the L2 cache, a few lines with every fourth
// step. The lines of y and of a residual are prefetched before a tile's sums begin. Values added to the sums are added in registers:
// reading them back, adding and storing again cost 8 % of a whole product. Measured on an AVX-512 core, 1576 x 768 x 2304 with a bias: 239
// GFLOP/s that way, 263 this way. The same tile on operands in the L1 cache: 269.
#pragma once

#include "kernels/cpu/simd/dense.h"
#include "kernels/cpu/simd/elementwise.h"

namespace serin::kernels::cpu {

/// The shape of a tile: as many accumulators as leave registers for b and one element of a.
template <class V>
inline constexpr int kTileRows = V::kWidth == 16 ? 8 : 4;
template <class V>
inline constexpr int kTileVectors = V::kWidth == 4 ? 2 : 3;

/// alpha * x + bias + residual for a tile of sums, while they are in registers; the last vector has `last` columns. `row`: the tile's
/// first.
template <class V, int kRows, int kVectors>
[[gnu::always_inline]] inline void add_operands(typename V::F (&sum)[kRows][kVectors], const GemmFinish& f, int64_t row, int last) {
  const auto each = [&](auto&& change) __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) change(sum[r][v], r, v);
    }
  };
  const auto add = [&](const float* p, int64_t p_row, int64_t p_column) __attribute__((always_inline)) {
    p += row * p_row;
    if (p_column == 0) return each([&](auto& x, int r, int) __attribute__((always_inline)) { x = x + V::set(p[r * p_row]); });
    each([&](auto& x, int r, int v) __attribute__((always_inline)) {
      const float* const at = p + r * p_row + v * V::kWidth;
      x = x + (v + 1 < kVectors ? V::load(at) : V::load_n(at, last, 0.f));
    });
  };
  if (f.alpha != 1.f) each([alpha = V::set(f.alpha)](auto& x, int, int) __attribute__((always_inline)) { x = x * alpha; });
  if (f.bias) add(f.bias, f.bias_row, f.bias_column);
  if (f.residual) add(f.residual, f.residual_row, f.residual_column);
}

/// Stores sums to y, finished except for the function; `row`: the tile's first within the block, `last`: columns of the last vector.
template <class V, int kRows, int kVectors>
[[gnu::always_inline]] inline void store_tile(typename V::F (&sum)[kRows][kVectors], float* y, int64_t y_row, int last, bool accumulate,
                                              const GemmFinish* finish, int64_t row) {
  const bool whole = last == V::kWidth;
  if (accumulate) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const float* const at = y + r * y_row + v * V::kWidth;
        sum[r][v] = sum[r][v] + (v + 1 < kVectors || whole ? V::load(at) : V::load_n(at, last, 0.f));
      }
    }
  }
  if (finish) add_operands<V>(sum, *finish, row, last);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      float* const at = y + r * y_row + v * V::kWidth;
      // Whole if possible: a processor does not forward a partial store to a following load.
      v + 1 < kVectors || whole ? V::store(at, sum[r][v]) : V::store_n(at, sum[r][v], last);
    }
  }
}

template <class V, UnaryFn kFn>
void finish_rows(float* y, int64_t y_row, int64_t rows, int64_t n, const GemmFinish& f) {
  using F = typename V::F;
  const F fn_alpha = V::set(f.fn_alpha), fn_beta = V::set(f.fn_beta);
  for (int64_t r = 0; r < rows; ++r, y += y_row) {
    int64_t i = 0;
    for (; i + V::kWidth <= n; i += V::kWidth) V::store(y + i, unary_value<V, kFn>(V::load(y + i), fn_alpha, fn_beta));
    const int rest = static_cast<int>(n - i);
    if (rest > 0) V::store_n(y + i, unary_value<V, kFn>(V::load_n(y + i, rest, 0.f), fn_alpha, fn_beta), rest);
  }
}

using FinishRows = void (*)(float* y, int64_t y_row, int64_t rows, int64_t n, const GemmFinish& f);

template <class V>
FinishRows finish_of(UnaryFn fn) {
  switch (fn) {
#define SERIN_FINISH_Follows(name) \
  case UnaryFn::k##name: return &finish_rows<V, UnaryFn::k##name>;
#define SERIN_FINISH_Alone(name)
#define SERIN_UNARY(name, word, alpha, beta, epilogue, ...) SERIN_FINISH_##epilogue(name)
#include "kernels/functions.def"
#undef SERIN_FINISH_Follows
#undef SERIN_FINISH_Alone
    default: return nullptr;
  }
}

template <class V>
bool finishes(UnaryFn fn) {
  return finish_of<V>(fn) != nullptr;
}

/// Future lines of b that a tile prefetches with every fourth step of k.
struct Prefetch {
  const char* at;
};

/// Prefetches the lines of y, and of a residual, that a tile will need when its sums are done.
template <class V, int kRows, int kVectors>
[[gnu::always_inline]] inline void fetch_results(const float* y, int64_t y_row, const GemmFinish* finish, int64_t row) {
  constexpr int kLine = 16;  // floats
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < kVectors * V::kWidth; i += kLine) __builtin_prefetch(y + r * y_row + i, 1, 3);
  }
  if (!finish || !finish->residual) return;
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < kVectors * V::kWidth; i += kLine) __builtin_prefetch(finish->residual + (row + r) * finish->residual_row + i, 0, 3);
  }
}

/// Products of fewer terms are too short for lines of y to arrive from memory meanwhile.
inline constexpr int64_t kDeep = 128;

template <class V, int kRows, int kVectors, int kLines>
void gemm_rows_tile(const GemmBlock& g, const float* a, float* y, int64_t row, Prefetch& next) {
  using F = typename V::F;
  constexpr int kWidth = V::kWidth;
  F sum[kRows][kVectors];
#pragma GCC unroll 32
  for (int i = 0; i < kRows * kVectors; ++i) sum[i / kVectors][i % kVectors] = V::set(0.f);

  if (g.k >= kDeep) fetch_results<V, kRows, kVectors>(y, g.y_row, g.finish, row);
  const float* b = g.b;
  const int64_t b_row = g.b_row, a_row = g.a_row, a_column = g.a_column;
  const char* ahead = next.at;
  const auto step = [&]() __attribute__((always_inline)) {
    F column[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) column[v] = V::load(b + ptrdiff_t{v} * kWidth);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const F value = V::set(a[r * a_row]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[r][v] = V::accumulate(value, column[v], sum[r][v]);
    }
    a += a_column;
    b += b_row;
  };
  int64_t p = g.k;
  for (; p >= 4; p -= 4) {
    step(), step(), step(), step();
#pragma GCC unroll 8
    for (int line = 0; line < kLines; ++line, ahead += 64) __builtin_prefetch(ahead, 0, 2);
  }
  for (; p > 0; --p) step();
  next.at = ahead;

  store_tile<V>(sum, y, g.y_row, static_cast<int>(g.n) - (kVectors - 1) * kWidth, g.accumulate, g.finish, row);
}

/// The tile of `rows` rows, found by counting down from kRows.
template <class V, int kRows, int kVectors, int kLines>
void gemm_rows(int64_t rows, const GemmBlock& g, const float* a, float* y, int64_t row, Prefetch& next) {
  if constexpr (kRows > 0) {
    if (rows == kRows)
      gemm_rows_tile<V, kRows, kVectors, kLines>(g, a, y, row, next);
    else
      gemm_rows<V, kRows - 1, kVectors, kLines>(rows, g, a, y, row, next);
  }
}

template <class V, int kVectors, int kLines>
void gemm_tiles(const GemmBlock& g) {
  constexpr int64_t kRows = kTileRows<V>;
  const int64_t tiles = (g.m + kRows - 1) / kRows;
  Prefetch next{reinterpret_cast<const char*>(g.next)};
  const char* const end = next.at + g.k * g.b_row * 4;
  const FinishRows finish = g.finish && g.finish->fn != UnaryFn::kIdentity ? finish_of<V>(g.finish->fn) : nullptr;
  int64_t row = 0;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t rows = g.m / tiles + (tile < g.m % tiles ? 1 : 0);
    float* const y = g.y + row * g.y_row;
    if (kLines > 0 && next.at < end)
      gemm_rows<V, kRows, kVectors, kLines>(rows, g, g.a + row * g.a_row, y, row, next);
    else
      gemm_rows<V, kRows, kVectors, 0>(rows, g, g.a + row * g.a_row, y, row, next);
    if (finish) finish(y, g.y_row, rows, g.n, *g.finish);
    row += rows;
  }
}

/// With every fourth step a tile reads 12 lines of b; the next panel has arrived after 12 / kLines tiles.
template <class V, int kVectors>
void gemm_vectors(const GemmBlock& g) {
  const int64_t tiles = (g.m + kTileRows<V> - 1) / kTileRows<V>;
  if (!g.next || tiles < 3) return gemm_tiles<V, kVectors, 0>(g);  // too few tiles to prefetch a panel as well
  if (tiles < 6) return gemm_tiles<V, kVectors, 4>(g);
  tiles < 12 ? gemm_tiles<V, kVectors, 2>(g) : gemm_tiles<V, kVectors, 1>(g);
}

template <class V>
void gemm_block(const GemmBlock& g) {
  if (g.n > 2 * V::kWidth && kTileVectors<V> > 2) return gemm_vectors<V, kTileVectors<V>>(g);
  g.n > V::kWidth ? gemm_vectors<V, 2>(g) : gemm_vectors<V, 1>(g);
}

}  // namespace serin::kernels::cpu
