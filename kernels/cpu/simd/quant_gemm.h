// quant_gemm.h: The tile of a quantised product: kRows x kVectors vectors of sums stay in registers over all taps and steps.
//
// Then they are finished and stored. A step loads one vector of weights for each kVectors (the panel is in reading order) and broadcasts
// one group of bytes of each row.
#pragma once

#include <cstring>

#include "kernels/cpu/simd/quant.h"

namespace serin::kernels::cpu {

static inline const uint8_t* piece(const QuantGemm& g, int64_t tap, int64_t row) {
  if (!g.offsets) return g.base + row * g.row_step;
  const int32_t offset = g.offsets[tap * g.offset_step + row];
  return offset < 0 ? g.padding : g.base + offset;
}

/// The bytes of a tile's rows, broadcast from where they lie. A vector type whose instruction takes wider numbers specialises this.
template <class V, int kRows, bool kFlip>
struct TileRows {
  static constexpr int64_t kSteps = int64_t{1} << 32;  ///< at a time
  const uint8_t* row[kRows];

  void read(const uint8_t* const (&from)[kRows], int64_t /*first*/, int64_t /*steps*/) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) row[r] = from[r];
  }
  typename V::I group(int r, int64_t step) const { return V::template broadcast<kFlip>(row[r] + step * V::kGroup); }
};

template <class V, int kRows, int kVectors, bool kFlip>
inline __attribute__((always_inline)) void quant_sums(const QuantGemm& g, int64_t row, typename V::I (&sum)[kRows][kVectors]) {
  using I = typename V::I;
  const char* panel = static_cast<const char*>(g.panel);
  // Starts with zeros and adds the bias at the end: if several sums start with a shared value, GCC 12 stores it twice, and spills.
#pragma GCC unroll 32
  for (int i = 0; i < kRows * kVectors; ++i) sum[i / kVectors][i % kVectors] = V::zero();
  TileRows<V, kRows, kFlip> rows;
  for (int64_t t = 0; t < g.taps; ++t) {
    const uint8_t* a[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) a[r] = piece(g, t, row + r);
    for (int64_t first = 0; first < g.steps; first += rows.kSteps) {
      const int64_t steps = g.steps - first < rows.kSteps ? g.steps - first : rows.kSteps;
      rows.read(a, first, steps);
      for (int64_t s = 0; s < steps; ++s) {
        I w[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) w[v] = V::load_weights(panel + v * V::kBytes);
        panel += kVectors * V::kBytes;
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) {
          const I x = rows.group(r, s);
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) sum[r][v] = V::dot(sum[r][v], x, w[v]);
        }
      }
    }
  }
}

/// A quantised type as vectors. Bounds are integers, so applying them before or after rounding gives the same; before, no number is too
/// large to round.
template <class V>
struct Target {
  typename V::F low, high;
  typename V::I zero;
  explicit Target(const QuantTo& to)
      : low(V::setf(static_cast<float>(to.low - to.zero))), high(V::setf(static_cast<float>(to.high - to.zero))), zero(V::set(to.zero)) {}
  typename V::F bounded(typename V::F x) const { return V::minf(V::maxf(x, low), high); }
  typename V::I operator()(typename V::F x) const { return V::add(V::round(bounded(x)), zero); }
  /// Less the zero point, still as floats.
  typename V::F real(typename V::F x) const { return V::whole(bounded(x)); }
};

// The stored form: bytes, bytes after a sum, or floats. Each gets one row of sums at a time, with bias. All scales are small enough that a
// sum times its scale fits 32 bits (kernels/cpu/quant_*.cc refuse others). So bytes need no bounds except their type's, which packing
// applies, and `low`.
template <class V>
struct FinishBytes {
  using I = typename V::I;
  const QuantGemm& g;
  const typename V::Packing packing;
  FinishBytes(const QuantGemm& gemm, const QuantTo& target) : g(gemm), packing(target) {}
  template <int kVectors>
  void store(I (&sum)[kVectors], const typename V::F (&scale)[kVectors], int64_t at, int n) const {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[v] = V::round(V::to_float(sum[v]) * scale[v]);
    packing.template store<kVectors>(static_cast<uint8_t*>(g.y) + at, sum, n);
  }
};

template <class V, bool kAgain>
struct FinishSum {
  using I = typename V::I;
  using F = typename V::F;
  const QuantGemm& g;
  const QuantSum& of;
  const Target<V> to, sum_to;
  const typename V::Packing packing;
  const I residual_zero;
  const F own_scale, residual_scale, again_scale;
  FinishSum(const QuantGemm& gemm, const QuantTo& target, const QuantSum& sum)
      : g(gemm),
        of(sum),
        to(target),
        sum_to(sum.to),
        packing(kAgain ? sum.again_to : sum.to),
        residual_zero(V::set(sum.residual_zero)),
        own_scale(V::setf(sum.own_scale)),
        residual_scale(V::setf(sum.residual_scale)),
        again_scale(V::setf(sum.again_scale)) {}
  template <int kVectors>
  void store(I (&sum)[kVectors], const F (&scale)[kVectors], int64_t at, int n) const {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      F real = to.real(V::to_float(sum[v]) * scale[v]) * own_scale;
      if (of.residual) {
        const auto* residual = static_cast<const uint8_t*>(of.residual) + at + v * V::kLanes;
        const int lanes = v + 1 < kVectors ? V::kLanes : n - v * V::kLanes;
        real = real + V::to_float(V::sub(V::load_bytes(residual, of.residual_signed, lanes), residual_zero)) * residual_scale;
      }
      if constexpr (kAgain) real = sum_to.real(real) * again_scale;
      sum[v] = V::round(real);
    }
    packing.template store<kVectors>(static_cast<uint8_t*>(g.y) + at, sum, n);
  }
};

template <class V>
struct FinishFloat {
  using I = typename V::I;
  using F = typename V::F;
  const QuantGemm& g;
  const float* extra;
  const F low;
  FinishFloat(const QuantGemm& gemm, const float* added, float least) : g(gemm), extra(added), low(V::setf(least)) {}
  template <int kVectors>
  void store(I (&sum)[kVectors], const F (&scale)[kVectors], int64_t at, int n) const {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int lanes = v + 1 < kVectors ? V::kLanes : n - v * V::kLanes;
      F real = V::to_float(sum[v]) * scale[v];
      if (extra) real = real + V::load_floats(extra + v * V::kLanes, lanes);
      V::store_floats(static_cast<float*>(g.y) + at + v * V::kLanes, V::maxf(real, low), lanes);
    }
  }
};

/// The default packing of results: one vector after the other.
template <class V>
struct PackSingly {
  const typename V::I zero, low, high;
  explicit PackSingly(const QuantTo& to) : zero(V::set(to.zero)), low(V::set(to.low)), high(V::set(to.high)) {}
  template <int kVectors>
  void store(uint8_t* y, const typename V::I (&q)[kVectors], int n) const {
    for (int v = 0; v < kVectors; ++v)
      V::store_bytes(y + v * V::kLanes, V::min(V::max(V::add(q[v], zero), low), high), v + 1 < kVectors ? V::kLanes : n - v * V::kLanes);
  }
};

template <class V, int kRows, int kVectors, bool kFlip, class Finish>
void quant_tile(const QuantGemm& g, int64_t row, const Finish& finish) {
  typename V::I sum[kRows][kVectors];
  quant_sums<V, kRows, kVectors, kFlip>(g, row, sum);
  const auto n = static_cast<int>(g.n);
  typename V::I bias[kVectors];
  typename V::F scale[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const int lanes = v + 1 < kVectors ? V::kLanes : n - v * V::kLanes;  // all but the last are whole
    bias[v] = V::load_ints(g.columns.bias + v * V::kLanes, lanes);
    scale[v] = V::load_floats(g.columns.scale + v * V::kLanes, lanes);
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[r][v] = V::add(sum[r][v], bias[v]);
    finish.template store<kVectors>(sum[r], scale, (row + r) * g.y_row, n);
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

/// Weights come from memory once and are used at once: without this, each panel would cause a wait. Piece `i` of `pieces`.
static inline void fetch_next(const QuantGemm& g, int64_t i, int64_t pieces) {
  constexpr int64_t kLine = 64;
  const int64_t bytes = (g.next_bytes / pieces + kLine) / kLine * kLine;
  const int64_t end = (i + 1) * bytes < g.next_bytes ? (i + 1) * bytes : g.next_bytes;
  for (int64_t at = i * bytes; at < end; at += kLine) __builtin_prefetch(static_cast<const char*>(g.next) + at, 0, 2);
}

template <class V, int kVectors, bool kFlip, class Finish>
void quant_rows(const QuantGemm& g, const Finish& finish) {
  int64_t row = 0;
  for (; row + V::kRows <= g.m; row += V::kRows) {
    if (g.next) fetch_next(g, row / V::kRows, g.m / V::kRows);
    quant_tile<V, V::kRows, kVectors, kFlip>(g, row, finish);
  }
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
