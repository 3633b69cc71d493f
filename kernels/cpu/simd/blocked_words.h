// blocked_words.h: The unit in which products of convolutions read a pixel along k: one float, or for some vector types a pair of bf16.
#pragma once

#include <cstdint>

namespace serin::kernels::cpu {

/// Words of V: floats. A vector type with other words specialises this.
template <class V>
struct Words {
  using F = typename V::F;
  static constexpr int64_t kOfBlock = V::kWidth;  ///< words of one pixel's block of channels
  static F multiply_add(F a, F b, F sum) { return V::accumulate(a, b, sum); }
  static void store(float* words, F x) { V::store(words, x); }
};

}  // namespace serin::kernels::cpu
