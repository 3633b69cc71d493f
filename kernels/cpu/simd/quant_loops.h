// quant_loops.h: Quantised tensors outside products: to and from f32, sums, pools, and convolutions with one filter for each channel.
#pragma once

#include "kernels/cpu/simd/quant.h"
#include "kernels/cpu/simd/quant_gemm.h"

namespace serin::kernels::cpu {

/// Calls f(i, n) for pieces of at most a vector.
template <class V, class F>
inline __attribute__((always_inline)) void each_vector(int64_t count, F&& f) {
  int64_t i = 0;
  for (; i + V::kLanes <= count; i += V::kLanes) f(i, V::kLanes);
  if (i < count) f(i, static_cast<int>(count - i));
}

template <class V>
void quantise(const float* x, uint8_t* y, int64_t n, float scale, const QuantTo& to) {
  const Target<V> target(to);
  const auto divisor = V::setf(scale);
  each_vector<V>(n, [&](int64_t i, int lanes) {
    V::store_bytes(y + i, target(V::nan_as_zero(V::divide(V::load_floats(x + i, lanes), divisor))), lanes);
  });
}

template <class V>
void dequantise(const uint8_t* x, bool is_signed, float* y, int64_t n, float scale, int32_t zero) {
  const auto factor = V::setf(scale);
  const auto offset = V::set(zero);
  each_vector<V>(n, [&](int64_t i, int lanes) {
    V::store_floats(y + i, V::to_float(V::sub(V::load_bytes(x + i, is_signed, lanes), offset)) * factor, lanes);
  });
}

template <class V>
void range(const float* x, int64_t n, float* low, float* high) {
  auto least = V::setf(0.f), most = V::setf(0.f);
  each_vector<V>(n, [&](int64_t i, int lanes) {
    const auto v = V::load_floats(x + i, lanes);
    least = V::minf(v, least);  // of a NaN and a number these return the second
    most = V::maxf(v, most);
  });
  *low = V::least(least);
  *high = V::most(most);
}

template <class V>
void quant_sum(const uint8_t* a, const uint8_t* b, bool a_signed, bool b_signed, uint8_t* y, int64_t n, const QuantSum& of,
               int32_t a_zero) {
  const Target<V> target(of.to);
  const auto first = V::set(a_zero), second = V::set(of.residual_zero);
  const auto first_scale = V::setf(of.own_scale), second_scale = V::setf(of.residual_scale);
  each_vector<V>(n, [&](int64_t i, int lanes) {
    const auto left = V::to_float(V::sub(V::load_bytes(a + i, a_signed, lanes), first)) * first_scale;
    const auto right = V::to_float(V::sub(V::load_bytes(b + i, b_signed, lanes), second)) * second_scale;
    V::store_bytes(y + i, target(left + right), lanes);
  });
}

template <class V>
void quant_multiply(const uint8_t* a, const uint8_t* b, bool a_signed, bool b_signed, uint8_t* y, int64_t n, const QuantSum& of,
                    int32_t a_zero) {
  const Target<V> target(of.to);
  const auto first = V::set(a_zero), second = V::set(of.residual_zero);
  const auto scale = V::setf(of.own_scale);
  each_vector<V>(n, [&](int64_t i, int lanes) {
    const auto left = V::to_float(V::sub(V::load_bytes(a + i, a_signed, lanes), first));
    const auto right = V::to_float(V::sub(V::load_bytes(b + i, b_signed, lanes), second));
    V::store_bytes(y + i, target(left * right * scale), lanes);
  });
}

template <class V>
void quant_maximum(const uint8_t* const* rows, int64_t count, bool is_signed, uint8_t* y, int64_t n) {
  each_vector<V>(n, [&](int64_t i, int lanes) {
    auto most = V::load_bytes(rows[0] + i, is_signed, lanes);
    for (int64_t r = 1; r < count; ++r) most = V::max(most, V::load_bytes(rows[r] + i, is_signed, lanes));
    V::store_bytes(y + i, most, lanes);
  });
}

template <class V>
void quant_add_rows(const uint8_t* x, bool is_signed, int64_t rows, int64_t row_step, int64_t n, int32_t* sums) {
  each_vector<V>(n, [&](int64_t i, int lanes) {
    auto sum = V::zero();
    for (int64_t r = 0; r < rows; ++r) sum = V::add(sum, V::load_bytes(x + r * row_step + i, is_signed, lanes));
    V::store_ints(sums + i, sum, lanes);
  });
}

template <class V>
void quant_depthwise(const QuantGemm& g, const QuantTo& to) {
  const Target<V> target(to);
  const auto* weights = static_cast<const int32_t*>(g.panel);
  for (int64_t row = 0; row < g.m; ++row) {
    each_vector<V>(g.n, [&](int64_t c, int lanes) {
      auto sum = V::load_ints(g.columns.bias + c, lanes);
      for (int64_t t = 0; t < g.taps; ++t)
        sum = V::add(sum, V::multiply(V::load_bytes(piece(g, t, row) + c, g.flip, lanes), V::load_ints(weights + t * g.n + c, lanes)));
      V::store_bytes(static_cast<uint8_t*>(g.y) + row * g.y_row + c, target(V::to_float(sum) * V::load_floats(g.columns.scale + c, lanes)),
                     lanes);
    });
  }
}

template <class V>
void rescale(float* y, int64_t n, const float* sums, float shift, float scale, const float* bias, float low) {
  const auto shifts = V::setf(shift), scales = V::setf(scale), lows = V::setf(low);
  each_vector<V>(n, [&](int64_t i, int lanes) {
    const auto whole = V::load_floats(y + i, lanes) - shifts * V::load_floats(sums + i, lanes);
    V::store_floats(y + i, V::maxf(whole * scales + V::load_floats(bias + i, lanes), lows), lanes);
  });
}

/// Without gathering instructions for bytes: eight at a time through a word.
inline void lookup(const uint8_t* x, const uint8_t* table, uint8_t* y, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t from, to = 0;
    std::memcpy(&from, x + i, sizeof from);
    for (int shift = 0; shift < 64; shift += 8) to |= uint64_t{table[from >> shift & 0xff]} << shift;
    std::memcpy(y + i, &to, sizeof to);
  }
  for (; i < n; ++i) y[i] = table[x[i]];
}

template <class V>
constexpr Quant quant_table(const char* name = "", const Quant* narrow = nullptr) {
  return {
      .name = name,
      .narrow = narrow,
      .group = V::kGroup,
      .panel_width = V::kLanes * V::kVectors,
      .lanes = V::kLanes,
      .pack_panel = &pack_panel<V>,
      .gemm_to_bytes = &gemm_to_bytes<V>,
      .gemm_to_float = &gemm_to_float<V>,
      .depthwise = &quant_depthwise<V>,
      .quantise = &quantise<V>,
      .dequantise = &dequantise<V>,
      .range = &range<V>,
      .rescale = &rescale<V>,
      .lookup = &lookup,
      .sum = &quant_sum<V>,
      .product = &quant_multiply<V>,
      .maximum = &quant_maximum<V>,
      .add_rows = &quant_add_rows<V>,
  };
}

}  // namespace serin::kernels::cpu
