// dense.h: The loops of products and attention, compiled once for each instruction set, as a table of plain functions.
//
// simd.h describes this interface.
#pragma once

#include <cstdint>

#include "kernels/op.h"

namespace serin::kernels::cpu {

/// Processing of results: y = act(alpha * y + bias + residual). The strides are those of broadcasting: 0 if one value serves all.
struct GemmFinish {
  float alpha = 1.f;
  const float* bias = nullptr;  ///< at the first row and column
  int64_t bias_row = 0, bias_column = 0;
  const float* residual = nullptr;
  int64_t residual_row = 0, residual_column = 0;
  UnaryFn fn = UnaryFn::kIdentity;
  float fn_alpha = 0.f, fn_beta = 0.f;
};

/// y[m, n] (+)= a[m, k] * b[k, n], n at most DenseLoops::panel_width; finished unless `finish` is null.
struct GemmBlock {
  int64_t m, n, k;
  const float* a;  // element (i, p) at a[i * a_row + p * a_column]
  int64_t a_row, a_column;
  const float* b;  // element (p, j) at b[p * b_row + j]
  int64_t b_row;
  float* y;
  int64_t y_row;
  bool accumulate;
  const float* next;  ///< the b of the next block, to prefetch into the cache; null: none
  const GemmFinish* finish;
};

/// Queries that share one key and value head: y = softmax(softcap(scale q k') + mask) v.
struct AttentionRows {
  int64_t rows, keys, head, v_head;
  const float* q;
  int64_t q_row;
  const float* k;  // packed by pack_keys
  const float* v;  // packed by pack_values, if there is one; else rows v_row apart
  int64_t v_row;
  float* y;
  int64_t y_row;
  float scale, softcap;            ///< softcap 0: none
  const float* mask;               ///< added: [rows, keys] with rows mask_row apart; or null
  const bool* allowed;             ///< the same as bool; or null
  int64_t mask_row, mask_columns;  ///< keys from mask_columns on are hidden
  int64_t first_hidden;            ///< row i sees only keys below first_hidden + i; very large: all
  bool masked_to_zero;
  float* scratch;  ///< kAttentionScratch floats, and in bf16 the words of kQueryBlock queries
};

/// Attention reads its packed data in words: one element, or in bf16 two in the space of one float. The two belong to one key; in values,
/// to two keys.
struct AttentionLoops {
  int64_t elements;  ///< of a word
  /// k [keys, head] with rows k_row apart as panels [panel][words of head][panel_width], zeros after the last key.
  void (*pack_keys)(const float* k, int64_t k_row, int64_t keys, int64_t head, float* words);
  /// v [keys, v_head] as panels [panel][words of keys][width], at most words(keys) * v_head up to whole panels. Null: values are read in
  /// place.
  void (*pack_values)(const float* v, int64_t v_row, int64_t keys, int64_t v_head, float* words);
  void (*attend)(const AttentionRows& rows);

  int64_t words(int64_t n) const { return (n + elements - 1) / elements; }
};

struct DenseLoops {
  int64_t panel_width;  ///< columns of a block
  void (*gemm)(const GemmBlock& block);
  /// True for functions allowed in an epilogue; false for others.
  bool (*finishes)(UnaryFn fn);
  AttentionLoops attention;
};

/// Queries whose scores are held at once, and keys of a part of the softmax.
inline constexpr int64_t kQueryBlock = 32, kKeyBlock = 960;
inline constexpr int64_t kAttentionScratch = kQueryBlock * (kKeyBlock + 2);  // floats

extern const DenseLoops kDensePortable;
extern const DenseLoops kDenseAvx2;  // x86-64 only, as the next
extern const DenseLoops kDenseAvx512;

}  // namespace serin::kernels::cpu
