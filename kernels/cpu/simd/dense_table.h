// dense_table.h: The loops of products and attention for one vector type; included by the dense_*.cc files only.
#pragma once

#include "kernels/cpu/simd/dense_attention.h"
#include "kernels/cpu/simd/dense_gemm.h"

namespace serin::kernels::cpu {

template <class V>
constexpr DenseLoops dense_table() {
  return {
      .panel_width = int64_t{kTileVectors<V>} * V::kWidth,
      .gemm = &gemm_block<V>,
      .finishes = &finishes<V>,
      .attention = {.elements = 1, .pack_keys = &pack_keys<V>, .pack_values = nullptr, .attend = &attend<V>},
  };
}

}  // namespace serin::kernels::cpu
