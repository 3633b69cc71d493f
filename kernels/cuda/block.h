// block.h: Combines a value from every thread of a block into one that all of them get.
#pragma once

#include <cstring>

#include "kernels/cuda/launch.h"

namespace serin::kernels::cuda {

/// The value of the lane whose number differs in the bits `lanes`. Structs of whole words, too.
template <class T>
__device__ T from_lane_xor(T value, int lanes) {
  if constexpr (std::is_arithmetic_v<T>) {
    return __shfl_xor_sync(0xFFFFFFFFu, value, lanes);
  } else {
    static_assert(sizeof(T) % sizeof(uint32_t) == 0);
    uint32_t words[sizeof(T) / sizeof(uint32_t)];
    memcpy(words, &value, sizeof(T));
    for (uint32_t& word : words) word = __shfl_xor_sync(0xFFFFFFFFu, word, lanes);
    memcpy(&value, words, sizeof(T));
    return value;
  }
}

/// Of a warp; the order of operands must not matter to f.
template <class T, class F>
__device__ T combine_warp(T value, F f) {
  for (int lanes = 16; lanes > 0; lanes /= 2) value = f(value, from_lane_xor(value, lanes));
  return value;
}

/// Of a block of kWarps whole warps; `shared` has room for kWarps values and is free again afterwards. With one warp there is no sharing
/// and no wait.
template <int kWarps, class T, class F>
__device__ T combine_block(T value, F f, T* shared) {
  value = combine_warp(value, f);
  if constexpr (kWarps > 1) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    if (threadIdx.x % 32 == 0) shared[warp] = value;
    __syncthreads();
    value = shared[0];
    for (int i = 1; i < kWarps; ++i) value = f(value, shared[i]);
    __syncthreads();
  }
  return value;
}

struct Plus {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

}  // namespace serin::kernels::cuda
