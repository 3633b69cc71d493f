// dense_bf16.h: Products of bf16 numbers, summed in f32: the interface to code with AVX512-BF16 instructions.
//
// Both operands are rounded to bf16 (8 bits of significand) beforehand and read in pairs along k. One instruction multiplies 32 pairs of
// elements and adds them to 16 sums. Inputs and outputs are f32.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/dense.h"

namespace serin::kernels::cpu {

/// y[m, n] (+)= a[m, pairs] * b[pairs, n], n at most Bf16Loops::panel_width; finished unless `finish` is null.
struct Bf16Block {
  int64_t m, n, pairs;
  const uint16_t* a;  // [m, pairs, 2] with rows a_row elements apart
  int64_t a_row;
  const uint16_t* b;  // [pairs, columns, 2] with rows b_row elements apart, whole vectors of columns
  int64_t b_row;
  float* y;
  int64_t y_row;
  bool accumulate;
  const uint16_t* next;  ///< the b of the next block; null: none
  const GemmFinish* finish;
};

struct Bf16Loops {
  int64_t panel_width;
  void (*gemm)(const Bf16Block& block);
  /// Rounds to nearest even.
  void (*round)(const float* x, uint16_t* y, int64_t n);
  const AttentionLoops* attention;
};

extern const Bf16Loops kBf16Avx512;  // x86-64 only, as the next
extern const AttentionLoops kAttentionBf16Avx512;

/// Null if this machine has no instruction for it.
const Bf16Loops* bf16_loops();

}  // namespace serin::kernels::cpu
