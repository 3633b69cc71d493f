// gemm.h: y[m, n] (+)= a[m, k] * panel[k, n] for one packed panel of B, two vectors wide.
//
// The tile of kRows x 2 vectors of y stays in registers over the whole of k; each step loads two vectors of the panel (which lies in cache in the
// order it is read) and broadcasts one element of each row of A. Blocking over k and packing: kernels/cpu/gemm.cc.
#pragma once

#include <cstdint>

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
};

template <class V, int kRows>
void gemm_tile(const GemmArgs<V>& g) {
  using F = typename V::F;
  constexpr int kWidth = V::kWidth;
  F sum[kRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = V::set(0.f);

  const float* a = g.a;
  const float* b = g.panel;
  for (int64_t p = 0; p < g.k; ++p, a += g.a_column, b += 2 * kWidth) {
    const F b0 = V::load(b);
    const F b1 = V::load(b + kWidth);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const F value = V::set(a[r * g.a_row]);
      sum[r][0] = V::fma(value, b0, sum[r][0]);
      sum[r][1] = V::fma(value, b1, sum[r][1]);
    }
  }

  const int n0 = g.n < kWidth ? static_cast<int>(g.n) : kWidth;
  const int n1 = static_cast<int>(g.n) - n0;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    float* y = g.y + r * g.y_row;
    if (g.accumulate) {
      sum[r][0] = sum[r][0] + V::load_n(y, n0, 0.f);
      if (n1 > 0) sum[r][1] = sum[r][1] + V::load_n(y + kWidth, n1, 0.f);
    }
    V::store_n(y, sum[r][0], n0);
    if (n1 > 0) V::store_n(y + kWidth, sum[r][1], n1);
  }
}

/// The tile for `rows` < kGemmRows, found by counting down from kRows.
template <class V, int kRows>
void gemm_last_rows(int64_t rows, const GemmArgs<V>& g) {
  if constexpr (kRows > 0) {
    if (rows == kRows)
      gemm_tile<V, kRows>(g);
    else
      gemm_last_rows<V, kRows - 1>(rows, g);
  }
}

template <class V>
void gemm_panel(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_row, int64_t a_column, const float* panel, float* y,
                int64_t y_row, bool accumulate) {
  GemmArgs<V> g{n, k, a, a_row, a_column, panel, y, y_row, accumulate};
  for (; m >= V::kGemmRows; m -= V::kGemmRows) {
    gemm_tile<V, V::kGemmRows>(g);
    g.a += V::kGemmRows * a_row;
    g.y += V::kGemmRows * y_row;
  }
  gemm_last_rows<V, V::kGemmRows - 1>(m, g);
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
