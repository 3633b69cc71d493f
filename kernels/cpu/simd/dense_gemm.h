// dense_gemm.h: y[m, n] (+)= a[m, k] * b[k, n] for up to three vectors of columns.
//
// A tile of kRows rows x kVectors vectors of y stays in registers over the whole of k; each step loads the vectors of b (which lie in cache in
// the order in which they are read) and broadcasts one element of each row of a. Rows are dealt out evenly, so that no tile is left with one row.
// b streams from far away once: while the rows pass by one panel, the next one is brought into the L2 cache, a few lines with every fourth step.
// Measured on an AVX-512 core (128 x 768 x 768, weights not in cache, GFLOP/s): 14 x 2 vectors 224, 8 x 3 252, 8 x 3 with prefetching 266; oneDNN 245.
#pragma once

#include "kernels/cpu/simd/dense.h"
#include "kernels/cpu/simd/elementwise.h"

namespace serin::kernels::cpu {

/// The shape of a tile: as many accumulators as leave registers for b and one element of a.
template <class V>
inline constexpr int kTileRows = V::kWidth == 16 ? 8 : 4;
template <class V>
inline constexpr int kTileVectors = V::kWidth == 4 ? 2 : 3;

template <class V, UnaryFn kFn>
void finish_rows(float* y, int64_t y_row, int64_t rows, int64_t n, const GemmFinish& f, int64_t first_row) {
  using F = typename V::F;
  const F alpha = V::set(f.alpha), fn_alpha = V::set(f.fn_alpha), fn_beta = V::set(f.fn_beta);
  const auto term = [](const float* p, int64_t column, int64_t i, int width) { return column ? V::load_n(p + i, width, 0.f) : V::set(*p); };
  for (int64_t r = 0; r < rows; ++r, y += y_row) {
    const float* const bias = f.bias ? f.bias + (first_row + r) * f.bias_row : nullptr;
    const float* const residual = f.residual ? f.residual + (first_row + r) * f.residual_row : nullptr;
    for (int64_t i = 0; i < n; i += V::kWidth) {
      const int width = n - i < V::kWidth ? static_cast<int>(n - i) : V::kWidth;
      F x = alpha * V::load_n(y + i, width, 0.f);
      if (bias) x = x + term(bias, f.bias_column, i, width);
      if (residual) x = x + term(residual, f.residual_column, i, width);
      V::store_n(y + i, unary_value<V, kFn>(x, fn_alpha, fn_beta), width);
    }
  }
}

using FinishRows = void (*)(float* y, int64_t y_row, int64_t rows, int64_t n, const GemmFinish& f, int64_t first_row);

template <class V>
FinishRows finish_of(UnaryFn fn) {
  switch (fn) {
    case UnaryFn::kIdentity: return &finish_rows<V, UnaryFn::kIdentity>;
    case UnaryFn::kRelu: return &finish_rows<V, UnaryFn::kRelu>;
    case UnaryFn::kLeakyRelu: return &finish_rows<V, UnaryFn::kLeakyRelu>;
    case UnaryFn::kClip: return &finish_rows<V, UnaryFn::kClip>;
    case UnaryFn::kSigmoid: return &finish_rows<V, UnaryFn::kSigmoid>;
    case UnaryFn::kTanh: return &finish_rows<V, UnaryFn::kTanh>;
    case UnaryFn::kHardSigmoid: return &finish_rows<V, UnaryFn::kHardSigmoid>;
    case UnaryFn::kHardSwish: return &finish_rows<V, UnaryFn::kHardSwish>;
    case UnaryFn::kElu: return &finish_rows<V, UnaryFn::kElu>;
    case UnaryFn::kSilu: return &finish_rows<V, UnaryFn::kSilu>;
    case UnaryFn::kGelu: return &finish_rows<V, UnaryFn::kGelu>;
    case UnaryFn::kGeluTanh: return &finish_rows<V, UnaryFn::kGeluTanh>;
    default: return nullptr;
  }
}

template <class V>
bool finishes(UnaryFn fn) {
  return finish_of<V>(fn) != nullptr;
}

/// Lines of b to come that a tile asks for with every fourth step of k.
struct Prefetch {
  const char* at;
};

template <class V, int kRows, int kVectors, int kLines>
void gemm_rows_tile(const GemmBlock& g, const float* a, float* y, Prefetch& next) {
  using F = typename V::F;
  constexpr int kWidth = V::kWidth;
  F sum[kRows][kVectors];
#pragma GCC unroll 32
  for (int i = 0; i < kRows * kVectors; ++i) sum[i / kVectors][i % kVectors] = V::set(0.f);

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
      for (int v = 0; v < kVectors; ++v) sum[r][v] = V::fma(value, column[v], sum[r][v]);
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

  const int last = static_cast<int>(g.n) - (kVectors - 1) * kWidth;  // columns of the last vector
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      float* const target = y + r * g.y_row + v * kWidth;
      const int n = v + 1 < kVectors ? kWidth : last;
      if (g.accumulate) sum[r][v] = sum[r][v] + V::load_n(target, n, 0.f);
      V::store_n(target, sum[r][v], n);
    }
  }
}

/// The tile of `rows` rows, found by counting down from kRows.
template <class V, int kRows, int kVectors, int kLines>
void gemm_rows(int64_t rows, const GemmBlock& g, const float* a, float* y, Prefetch& next) {
  if constexpr (kRows > 0) {
    if (rows == kRows)
      gemm_rows_tile<V, kRows, kVectors, kLines>(g, a, y, next);
    else
      gemm_rows<V, kRows - 1, kVectors, kLines>(rows, g, a, y, next);
  }
}

template <class V, int kVectors, int kLines>
void gemm_tiles(const GemmBlock& g) {
  constexpr int64_t kRows = kTileRows<V>;
  const int64_t tiles = (g.m + kRows - 1) / kRows;
  Prefetch next{reinterpret_cast<const char*>(g.next)};
  const FinishRows finish = g.finish ? finish_of<V>(g.finish->fn) : nullptr;
  int64_t row = 0;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t rows = g.m / tiles + (tile < g.m % tiles ? 1 : 0);
    float* const y = g.y + row * g.y_row;
    gemm_rows<V, kRows, kVectors, kLines>(rows, g, g.a + row * g.a_row, y, next);
    if (finish) finish(y, g.y_row, rows, g.n, *g.finish, row);
    row += rows;
  }
}

template <class V, int kVectors>
void gemm_vectors(const GemmBlock& g) {
  if (!g.next || g.m <= 2 * kTileRows<V>) return gemm_tiles<V, kVectors, 0>(g);  // too few tiles to bring a panel in beside
  g.m <= 5 * kTileRows<V> ? gemm_tiles<V, kVectors, 4>(g) : gemm_tiles<V, kVectors, 2>(g);
}

template <class V>
void gemm_block(const GemmBlock& g) {
  if (g.n > 2 * V::kWidth && kTileVectors<V> > 2) return gemm_vectors<V, kTileVectors<V>>(g);
  g.n > V::kWidth ? gemm_vectors<V, 2>(g) : gemm_vectors<V, 1>(g);
}

}  // namespace serin::kernels::cpu
