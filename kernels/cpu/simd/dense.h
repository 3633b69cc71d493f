// dense.h: the loops of products and attention, compiled once for each instruction set, as a table of plain functions; the border that simd.h
// describes.
#pragma once

#include <cstdint>

#include "kernels/op.h"

namespace serin::kernels::cpu {

/// What is done to results: y = act(alpha * y + bias + residual). The strides are those of broadcasting: 0 where one value serves all.
struct GemmFinish {
  float alpha = 1.f;
  const float* bias = nullptr;  ///< of the first row and column
  int64_t bias_row = 0, bias_column = 0;
  const float* residual = nullptr;
  int64_t residual_row = 0, residual_column = 0;
  UnaryFn fn = UnaryFn::kIdentity;
  float fn_alpha = 0.f, fn_beta = 0.f;
};

/// y[m, n] (+)= a[m, k] * b[k, n], n at most DenseLoops::panel_width; finished where `finish` is not null.
struct GemmBlock {
  int64_t m, n, k;
  const float* a;  // element (i, p) at a[i * a_row + p * a_column]
  int64_t a_row, a_column;
  const float* b;  // element (p, j) at b[p * b_row + j]
  int64_t b_row;
  float* y;
  int64_t y_row;
  bool accumulate;
  const float* next;  ///< the b of the block that comes after, to be brought into the cache; null: none
  const GemmFinish* finish;
};

/// Queries that share one key and value head: y = softmax(softcap(scale q k') + mask) v.
struct AttentionRows {
  int64_t rows, keys, head, v_head;
  const float* q;
  int64_t q_row;
  const float* k;  // packed by pack_keys
  const float* v;  // packed by pack_values, where there is one; else rows v_row apart
  int64_t v_row;
  float* y;
  int64_t y_row;
  float scale, softcap;            ///< softcap 0: none
  const float* mask;               ///< added: [rows, keys] with rows mask_row apart; or null
  const bool* allowed;             ///< the same as bool; or null
  int64_t mask_row, mask_columns;  ///< keys from mask_columns on are not looked at
  int64_t first_hidden;            ///< row i looks at keys below first_hidden + i only; very large: at all
  bool masked_to_zero;
  float* scratch;  ///< kAttentionScratch floats, and in bf16 the words of kQueryBlock queries
};

/// Attention reads what it packed in words: one element, or in bf16 two of one key (of a value: of two keys) side by side in the space of one float.
struct AttentionLoops {
  int64_t elements;  ///< of a word
  /// k [keys, head] with rows k_row apart as panels [panel][words of head][panel_width], zeros behind the last key.
  void (*pack_keys)(const float* k, int64_t k_row, int64_t keys, int64_t head, float* words);
  /// v [keys, v_head] as panels [panel][words of keys][width], at most words(keys) * v_head up to whole panels. Null: values are read as they lie.
  void (*pack_values)(const float* v, int64_t v_row, int64_t keys, int64_t v_head, float* words);
  void (*attend)(const AttentionRows& rows);

  int64_t words(int64_t n) const { return (n + elements - 1) / elements; }
};

struct DenseLoops {
  int64_t panel_width;  ///< columns of a block
  void (*gemm)(const GemmBlock& block);
  /// For functions that an epilogue may have; false for others.
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
