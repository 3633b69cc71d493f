// gemm.h: y[m, n] (+)= a[m, k] * panel[k, n] for one packed panel of B, two vectors wide.
//
// The tile of kRows x 2 vectors of y stays in registers over the whole of k. Each step loads two vectors of the panel, which is in cache in
// reading order, and broadcasts one element of each row of A. If n fits in one vector the tile is half as wide. Blocking over k and
// packing: kernels/cpu/gemm.cc.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/elementwise.h"
#include "kernels/cpu/simd/simd.h"

namespace serin::kernels::cpu {

template <class V>
struct GemmArgs {
  int64_t n, k;
  const float* a;  // [rows, k] with strides a_row, a_column
  int64_t a_row, a_column;
  const float* panel;  // [k, 2 * kWidth]
  float* y;            // [rows, n] with stride y_row
  int64_t y_row;
  bool accumulate;
  const RowFinish* finish;  // or null
  const float* bias;        // [rows] of the finish, or null
};

template <class V, int kRows, int kVectors>
void gemm_tile(const GemmArgs<V>& g) {
  using F = typename V::F;
  constexpr int kWidth = V::kWidth;
  F sum[kRows][kVectors];
#pragma GCC unroll 32
  for (int i = 0; i < kRows * kVectors; ++i) sum[i / kVectors][i % kVectors] = V::set(0.f);

  const float* a = g.a;
  const float* b = g.panel;
  for (int64_t p = 0; p < g.k; ++p, a += g.a_column, b += ptrdiff_t{2} * kWidth) {
    F column[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) column[v] = V::load(b + ptrdiff_t{v} * kWidth);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const F value = V::set(a[r * g.a_row]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] = V::accumulate(value, column[v], sum[r][v]);
    }
  }

#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      float* y = g.y + r * g.y_row + v * kWidth;
      const int n = v + 1 < kVectors ? kWidth : static_cast<int>(g.n) - v * kWidth;  // all but the last are whole
      if (g.accumulate) sum[r][v] = sum[r][v] + V::load_n(y, n, 0.f);
      if (g.bias) sum[r][v] = sum[r][v] + V::set(g.bias[r]);
      if (g.finish) sum[r][v] = clip<V>(sum[r][v], V::set(g.finish->low), V::set(g.finish->high));
      V::store_n(y, sum[r][v], n);
    }
  }
}

/// The tile for `rows` < kGemmRows, found by counting down from kRows.
template <class V, int kRows, int kVectors>
void gemm_last_rows(int64_t rows, const GemmArgs<V>& g) {
  if constexpr (kRows > 0) {
    if (rows == kRows)
      gemm_tile<V, kRows, kVectors>(g);
    else
      gemm_last_rows<V, kRows - 1, kVectors>(rows, g);
  }
}

template <class V, int kVectors>
void gemm_rows(int64_t m, GemmArgs<V>& g) {
  for (; m >= V::kGemmRows; m -= V::kGemmRows) {
    gemm_tile<V, V::kGemmRows, kVectors>(g);
    g.a += V::kGemmRows * g.a_row;
    g.y += V::kGemmRows * g.y_row;
    if (g.bias) g.bias += V::kGemmRows;
  }
  gemm_last_rows<V, V::kGemmRows - 1, kVectors>(m, g);
}

template <class V>
void gemm_panel(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_row, int64_t a_column, const float* panel, float* y,
                int64_t y_row, bool accumulate, const RowFinish* finish) {
  GemmArgs<V> g{n, k, a, a_row, a_column, panel, y, y_row, accumulate, finish, finish ? finish->bias : nullptr};
  n > V::kWidth ? gemm_rows<V, 2>(m, g) : gemm_rows<V, 1>(m, g);
}

template <class V>
void add_terms(float* y, int64_t n, float alpha, const float* bias, bool bias_scalar, const float* residual, bool residual_scalar) {
  const auto scale = V::set(alpha);
  const auto term = [](const float* p, bool scalar, int64_t i, int width) {
    if (!p) return V::set(0.f);
    return scalar ? V::set(*p) : V::load_n(p + i, width, 0.f);
  };
  for (int64_t i = 0; i < n; i += V::kWidth) {
    const int width = n - i < V::kWidth ? static_cast<int>(n - i) : V::kWidth;
    const auto sum = V::fma(V::load_n(y + i, width, 0.f), scale, term(bias, bias_scalar, i, width));
    V::store_n(y + i, sum + term(residual, residual_scalar, i, width), width);
  }
}

}  // namespace serin::kernels::cpu
