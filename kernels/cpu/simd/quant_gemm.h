// quant_gemm.h: the tile of a quantised product: kRows x kVectors vectors of sums stay in registers over all taps and steps, then are finished and stored.
//
// A step loads one vector of weights for each kVectors (the panel lies in the order it is read) and broadcasts one group of bytes of each row.
#pragma once

#include <cstring>

#include "kernels/cpu/simd/quant.h"

namespace serin::kernels::cpu {

static inline const uint8_t* piece(const QuantGemm& g, int64_t tap, int64_t row) {
  if (!g.offsets) return g.base + row * g.row_step;
  const int32_t offset = g.offsets[tap * g.offset_step + row];
  return offset < 0 ? g.padding : g.base + offset;
}

template <class V, int kRows, int kVectors, bool kFlip>
inline __attribute__((always_inline)) void quant_sums(const QuantGemm& g, int64_t row, typename V::I (&sum)[kRows][kVectors]) {
  using I = typename V::I;
  const char* panel = static_cast<const char*>(g.panel);
#pragma GCC unroll 32
  for (int i = 0; i < kRows * kVectors; ++i) sum[i / kVectors][i % kVectors] = V::zero();
  for (int64_t t = 0; t < g.taps; ++t) {
    const uint8_t* a[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) a[r] = piece(g, t, row + r);
    for (int64_t s = 0; s < g.steps; ++s) {
      I w[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) w[v] = V::load_weights(panel + v * V::kBytes);
      panel += kVectors * V::kBytes;
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const I x = V::template broadcast<kFlip>(a[r] + s * V::kGroup);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sum[r][v] = V::dot(sum[r][v], x, w[v]);
      }
    }
  }
}

/// A quantised type as vectors: round(x) + zero, within bounds.
template <class V>
struct Target {
  typename V::I zero, low, high;
  explicit Target(const QuantTo& to) : zero(V::set(to.zero)), low(V::set(to.low)), high(V::set(to.high)) {}
  typename V::I operator()(typename V::F x) const { return V::min(V::max(V::add(V::round(x), zero), low), high); }
  /// Less the zero point again.
  typename V::F real(typename V::I q) const { return V::to_float(V::sub(q, zero)); }
};

// What is stored: bytes, bytes after a sum, or floats.
template <class V>
struct FinishBytes {
  const QuantGemm& g;
  Target<V> to;
  FinishBytes(const QuantGemm& gemm, const QuantTo& target) : g(gemm), to(target) {}
  void operator()(typename V::I sum, typename V::I bias, typename V::F scale, int64_t at, int64_t, int n) const {
    V::store_bytes(static_cast<uint8_t*>(g.y) + at, to(V::to_float(V::add(sum, bias)) * scale), n);
  }
};

template <class V, bool kAgain>
struct FinishSum {
  const QuantGemm& g;
  const QuantSum& of;
  Target<V> to, sum_to, again_to;
  typename V::I residual_zero;
  typename V::F own_scale, residual_scale, again_scale;
  FinishSum(const QuantGemm& gemm, const QuantTo& target, const QuantSum& sum)
      : g(gemm),
        of(sum),
        to(target),
        sum_to(sum.to),
        again_to(sum.again_to),
        residual_zero(V::set(sum.residual_zero)),
        own_scale(V::setf(sum.own_scale)),
        residual_scale(V::setf(sum.residual_scale)),
        again_scale(V::setf(sum.again_scale)) {}
  void operator()(typename V::I sum, typename V::I bias, typename V::F scale, int64_t at, int64_t, int n) const {
    auto real = to.real(to(V::to_float(V::add(sum, bias)) * scale)) * own_scale;
    if (of.residual) {
      const auto r = V::load_bytes(static_cast<const uint8_t*>(of.residual) + at, of.residual_signed, n);
      real = real + V::to_float(V::sub(r, residual_zero)) * residual_scale;
    }
    auto y = sum_to(real);
    if constexpr (kAgain) y = again_to(sum_to.real(y) * again_scale);
    V::store_bytes(static_cast<uint8_t*>(g.y) + at, y, n);
  }
};

template <class V>
struct FinishFloat {
  const QuantGemm& g;
  const float* extra;
  typename V::F low;
  FinishFloat(const QuantGemm& gemm, const float* added, float least) : g(gemm), extra(added), low(V::setf(least)) {}
  void operator()(typename V::I sum, typename V::I bias, typename V::F scale, int64_t at, int64_t column, int n) const {
    auto real = V::to_float(V::add(sum, bias)) * scale;
    if (extra) real = real + V::load_floats(extra + column, n);
    V::store_floats(static_cast<float*>(g.y) + at, V::maxf(real, low), n);
  }
};

template <class V, int kRows, int kVectors, bool kFlip, class Finish>
void quant_tile(const QuantGemm& g, int64_t row, const Finish& finish) {
  typename V::I sum[kRows][kVectors];
  quant_sums<V, kRows, kVectors, kFlip>(g, row, sum);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const int n = v + 1 < kVectors ? V::kLanes : static_cast<int>(g.n) - v * V::kLanes;
    const auto bias = V::load_ints(g.columns.bias + v * V::kLanes, n);
    const auto scale = V::load_floats(g.columns.scale + v * V::kLanes, n);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) finish(sum[r][v], bias, scale, (row + r) * g.y_row + v * V::kLanes, v * V::kLanes, n);
  }
}

template <class V, int kRows, int kVectors, bool kFlip, class Finish>
void quant_last_rows(const QuantGemm& g, int64_t row, const Finish& finish) {
  if constexpr (kRows > 0) {
    if (g.m - row == kRows)
      quant_tile<V, kRows, kVectors, kFlip>(g, row, finish);
    else
      quant_last_rows<V, kRows - 1, kVectors, kFlip>(g, row, finish);
  }
}

template <class V, int kVectors, bool kFlip, class Finish>
void quant_rows(const QuantGemm& g, const Finish& finish) {
  int64_t row = 0;
  for (; row + V::kRows <= g.m; row += V::kRows) quant_tile<V, V::kRows, kVectors, kFlip>(g, row, finish);
  quant_last_rows<V, V::kRows - 1, kVectors, kFlip>(g, row, finish);
}

template <class V, bool kFlip, class Finish>
void quant_columns(const QuantGemm& g, const Finish& finish) {
  const int64_t vectors = (g.n + V::kLanes - 1) / V::kLanes;
  if (vectors == V::kVectors) return quant_rows<V, V::kVectors, kFlip>(g, finish);
  if constexpr (V::kVectors > 2) {
    if (vectors == 3) return quant_rows<V, 3, kFlip>(g, finish);
    if (vectors == 2) return quant_rows<V, 2, kFlip>(g, finish);
  }
  quant_rows<V, 1, kFlip>(g, finish);
}

template <class V, class Finish>
void quant_product(const QuantGemm& g, const Finish& finish) {
  g.flip ? quant_columns<V, true>(g, finish) : quant_columns<V, false>(g, finish);
}

template <class V>
void gemm_to_bytes(const QuantGemm& g, const QuantTo& to, const QuantSum* sum) {
  if (!sum)
    quant_product<V>(g, FinishBytes<V>(g, to));
  else if (sum->again)
    quant_product<V>(g, FinishSum<V, true>(g, to, *sum));
  else
    quant_product<V>(g, FinishSum<V, false>(g, to, *sum));
}

template <class V>
void gemm_to_float(const QuantGemm& g, const float* extra, float low) {
  quant_product<V>(g, FinishFloat<V>(g, extra, low));
}

template <class V>
void pack_panel(const int8_t* w, int64_t k_step, int64_t n_step, int64_t tap_step, int64_t taps, int64_t k, int64_t n, void* panel) {
  auto* out = static_cast<typename V::Weight*>(panel);
  const int64_t lanes = (n + V::kLanes - 1) / V::kLanes * V::kLanes;
  for (int64_t t = 0; t < taps; ++t) {
    for (int64_t s = 0; s < k; s += V::kGroup) {
      for (int64_t j = 0; j < lanes; ++j) {
        for (int64_t p = s; p < s + V::kGroup; ++p)
          *out++ = j < n && p < k ? w[t * tap_step + p * k_step + j * n_step] : typename V::Weight{0};
      }
    }
  }
}

}  // namespace serin::kernels::cpu
