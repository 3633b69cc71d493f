// blocked_words.h: what the products of convolutions take of a pixel at each step of k: one float, or where the vector type says so a pair of bf16.
#pragma once

#include <cstdint>

namespace serin::kernels::cpu {

/// Words of V: floats. A vector type whose words are something else specialises this.
template <class V>
struct Words {
  using F = typename V::F;
  static constexpr int64_t kOfBlock = V::kWidth;  ///< words of a block of channels of one pixel
  static F multiply_add(F a, F b, F sum) { return V::fma(a, b, sum); }
  static void store(float* words, F x) { V::store(words, x); }
};

}  // namespace serin::kernels::cpu
