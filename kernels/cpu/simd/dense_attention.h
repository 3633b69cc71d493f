// dense_attention.h: Attention of a few queries at a time: scores, softmax and the sum of the values while they are in cache.
//
// For kQueryBlock queries and kKeyBlock keys the tiles of dense_gemm.h compute scores = q k'. One pass scales, caps, masks and finds each
// row's maximum. Another takes e^(score - maximum) and sums. The same tiles then multiply by the values. With more keys than a block, the
// sums so far are rescaled when a maximum rises (Milakov and Gimelshein, arXiv 1805.02867; FlashAttention's tiling, 2205.14135). Only the
// result is written to memory.
#pragma once

#include "kernels/cpu/simd/dense_gemm.h"
#include "kernels/cpu/simd/rows.h"

namespace serin::kernels::cpu {

/// Columns of a panel of packed keys.
template <class V>
constexpr int64_t kKeyPanel = int64_t{kTileVectors<V>} * V::kWidth;

template <class V>
void pack_keys(const float* k, int64_t k_row, int64_t keys, int64_t head, float* packed) {
  constexpr int64_t kPanel = kKeyPanel<V>;
  for (int64_t j = 0; j < keys; j += kPanel, packed += kPanel * head) {
    const int64_t columns = keys - j < kPanel ? keys - j : kPanel;
    constexpr int64_t kBlock = 16;  // elements of a key moved at a time: a line of each key is read once
    for (int64_t d = 0; d < head; d += kBlock) {
      const int64_t depth = head - d < kBlock ? head - d : kBlock;
      for (int64_t c = 0; c < columns; ++c) {
        const float* const source = k + (j + c) * k_row + d;
        for (int64_t i = 0; i < depth; ++i) packed[(d + i) * kPanel + c] = source[i];
      }
      for (int64_t i = 0; columns < kPanel && i < depth; ++i) {
        for (int64_t c = columns; c < kPanel; ++c) packed[(d + i) * kPanel + c] = 0.f;
      }
    }
  }
}

/// y[m, n] (+)= a b for any n: panel by panel. `b_panel`: distance from one panel of b to the next.
template <class V>
void attention_product(GemmBlock g, int64_t n, int64_t b_panel, int64_t panel) {
  for (int64_t j = 0; j < n; j += panel, g.b += b_panel, g.y += panel) {
    g.n = n - j < panel ? n - j : panel;
    gemm_block<V>(g);
  }
}

/// Columns of a panel of values: whole vectors, distributed as evenly as possible.
template <class V>
int64_t value_panel(int64_t v_head) {
  const int64_t panels = (v_head + kKeyPanel<V> - 1) / kKeyPanel<V>;
  return ((v_head + panels - 1) / panels + V::kWidth - 1) / V::kWidth * V::kWidth;
}

/// The two products for `rows` queries from `row` on and n keys from `first` on, in f32. A vector type with other words specialises this.
template <class V>
struct AttentionProducts {
  static void scores(const AttentionRows& a, int64_t row, int64_t rows, int64_t first, int64_t n, float* scores) {
    const GemmBlock product{rows,  0,       a.head, a.q + row * a.q_row, a.q_row, 1, a.k + first * a.head, kKeyPanel<V>, scores, kKeyBlock,
                            false, nullptr, nullptr};
    attention_product<V>(product, n, kKeyPanel<V> * a.head, kKeyPanel<V>);
  }
  static void values(const AttentionRows& a, int64_t row, int64_t rows, int64_t first, int64_t n, float* scores) {
    const int64_t width = value_panel<V>(a.v_head);
    float* const y = a.y + row * a.y_row;
    const GemmBlock product{rows, 0, n, scores, kKeyBlock, 1, a.v + first * a.v_row, a.v_row, y, a.y_row, first > 0, nullptr, nullptr};
    attention_product<V>(product, a.v_head, width, width);
  }
};

/// Scales, caps and masks the scores of one query, for the keys [first, first + n), and returns their maximum.
template <class V>
float prepare_scores(const AttentionRows& a, int64_t row, int64_t first, float* scores, int64_t n) {
  using F = typename V::F;
  const F scale = V::set(a.scale), hidden = V::set(-__builtin_inff());
  const F cap = V::set(a.softcap), inverse_cap = V::set(a.softcap > 0 ? 1.f / a.softcap : 0.f);
  const float* const mask = a.mask ? a.mask + row * a.mask_row + first : nullptr;
  const bool* const allowed = a.allowed ? a.allowed + row * a.mask_row + first : nullptr;
  F max = hidden;
  for (int64_t j = 0; j < n; j += V::kWidth) {
    const int width = n - j < V::kWidth ? static_cast<int>(n - j) : V::kWidth;
    F x = V::load_n(scores + j, width, 0.f) * scale;
    if (a.softcap > 0) x = cap * math::tanh<V>(x * inverse_cap);
    if (mask) x = x + V::load_n(mask + j, width, 0.f);
    if (allowed) {
      unsigned char rest[V::kWidth] = {};
      const void* bytes = allowed + j;
      if (width < V::kWidth) bytes = __builtin_memcpy(rest, allowed + j, static_cast<size_t>(width));
      x = x + V::blend(V::less(V::set(0.f), V::load_u8(bytes)), V::set(0.f), hidden);
    }
    V::store_n(scores + j, x, width);
    max = max_nan<V>(max, V::keep_n(x, width, hidden));
  }
  return join_elements<V, Reduction<V, ReduceFn::kMax>>(max)[0];
}

/// e^(score - max) in place; returns their sum.
template <class V>
float exponentials(float* scores, int64_t n, float max) {
  using F = typename V::F;
  const F shift = V::set(max);
  F sum = V::set(0.f);
  for (int64_t j = 0; j < n; j += V::kWidth) {
    const int width = n - j < V::kWidth ? static_cast<int>(n - j) : V::kWidth;
    const F e = V::keep_n(math::exp_of_difference<V>(V::load_n(scores + j, width, 0.f) - shift), width, V::set(0.f));
    V::store_n(scores + j, e, width);
    sum = sum + e;
  }
  return join_elements<V, Reduction<V, ReduceFn::kSum>>(sum)[0];
}

template <class V>
void scale_row(float* y, int64_t n, float factor) {
  const auto f = V::set(factor);
  for (int64_t i = 0; i < n; i += V::kWidth) {
    const int width = n - i < V::kWidth ? static_cast<int>(n - i) : V::kWidth;
    V::store_n(y + i, V::load_n(y + i, width, 0.f) * f, width);
  }
}

/// Keys that row i may see. (A template, like everything here: instruction sets would share a plain inline function.)
template <class V>
int64_t visible_keys(const AttentionRows& a, int64_t row) {
  const int64_t causal = a.first_hidden + row, end = a.mask || a.allowed ? a.mask_columns : a.keys;
  const int64_t least = causal < end ? causal : end;
  return least < 0 ? 0 : least < a.keys ? least : a.keys;
}

template <class V>
void attend_block(const AttentionRows& a, int64_t first_row, int64_t rows) {
  float* const scores = a.scratch;                       // [rows, kKeyBlock]
  float* const sums = scores + kQueryBlock * kKeyBlock;  // [rows]
  float* const maxima = sums + kQueryBlock;              // [rows]
  float* const y = a.y + first_row * a.y_row;
  for (int64_t r = 0; r < rows; ++r) sums[r] = 0.f, maxima[r] = -__builtin_inff();
  const int64_t keys = visible_keys<V>(a, first_row + rows - 1);
  for (int64_t first = 0; first == 0 || first < keys; first += kKeyBlock) {
    const int64_t n = keys - first < kKeyBlock ? keys - first : kKeyBlock;
    AttentionProducts<V>::scores(a, first_row, rows, first, n, scores);
    for (int64_t r = 0; r < rows; ++r) {
      float* const row = scores + r * kKeyBlock;
      const int64_t visible = visible_keys<V>(a, first_row + r) - first;
      const int64_t seen = visible < 0 ? 0 : visible < n ? visible : n;
      const float block_max = prepare_scores<V>(a, first_row + r, first, row, seen);
      const float max = block_max > maxima[r] || block_max != block_max ? block_max : maxima[r];
      const float base = max == -__builtin_inff() ? 0.f : max;  // no key visible yet: e^(-inf - 0) is 0, e^(-inf + inf) would be NaN
      const float sum = exponentials<V>(row, seen, base);
      for (int64_t j = seen; j < n; ++j) row[j] = 0.f;
      const float kept = first == 0 || maxima[r] == -__builtin_inff() ? 0.f : math::exp_of_difference<V>(V::set(maxima[r] - base))[0];
      sums[r] = sums[r] * kept + sum;
      maxima[r] = max;
      if (first > 0) scale_row<V>(y + r * a.y_row, a.v_head, kept);
    }
    AttentionProducts<V>::values(a, first_row, rows, first, n, scores);
  }
  for (int64_t r = 0; r < rows; ++r) {
    const bool blind = sums[r] == 0.f;  // ONNX: 0 / 0
    scale_row<V>(y + r * a.y_row, a.v_head, blind && a.masked_to_zero ? 0.f : blind ? __builtin_nanf("") : 1.f / sums[r]);
  }
}

template <class V>
void attend(const AttentionRows& a) {
  for (int64_t row = 0; row < a.rows; row += kQueryBlock) attend_block<V>(a, row, a.rows - row < kQueryBlock ? a.rows - row : kQueryBlock);
}

}  // namespace serin::kernels::cpu
