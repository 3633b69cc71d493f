// nbits_int8.h: Products of weights of 4 bits with activations rounded to 8 bits, with a scale for each block (MatMulNBits, accuracy_level
// 4).
//
// This is the interface to code with AVX512-VNNI instructions.
//
// One instruction adds four products of a weight (0 to 15) and an activation (-127 to 127) to each of 16 sums. A column is read in chunks
// of 64 bytes, whose low halves are its even elements. Activations are reordered the same way once for each product.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/simd.h"

namespace serin::kernels::cpu {

/// Rounded activations of `rows` rows.
struct NBitsActivations {
  static constexpr int64_t kChunk = 128;  ///< elements
  int8_t* bytes;                          ///< [rows, chunks, 128]: of each chunk the even elements, then the odd ones; zeros after the last
  float* scales;                          ///< [rows, chunks, 16]: for each of a chunk's sums, the scale of its block
  float* sums;                            ///< [rows, blocks]: of a block's rounded elements, scaled

  static int64_t chunks(const NBitsShape& shape) { return (shape.blocks * shape.block + kChunk - 1) / kChunk; }
};

struct NBitsInt8Loops {
  /// Row `row` of the activations, of n elements.
  void (*round)(const float* x, int64_t n, const NBitsShape& shape, int64_t row, const NBitsActivations& to);
  /// y [rows, columns]. Blocks of 32, 64 or 128 elements.
  void (*product)(const NBitsShape& shape, const NBitsColumns& columns, const NBitsActivations& a, int64_t rows, float* y, int64_t y_row);
};

extern const NBitsInt8Loops kNBitsInt8Avx512Vnni;  // x86-64 only

}  // namespace serin::kernels::cpu
