// pack.h: The group of elements that a thread loads at once.
#pragma once

#include <cstdint>

#include "kernels/cuda/thread.h"
#include "kernels/float16.h"

namespace serin::kernels::cuda {

/// A load or store of 16 bytes; a larger pack is several.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Pack {
  T values[kCount];
};

template <class T, int kCount>
SERIN_HD bool is_aligned(const T* p) {
  return reinterpret_cast<uintptr_t>(p) % alignof(Pack<T, kCount>) == 0;
}

/// A device aborts every kernel of the process on an unaligned address; the emulated one is equally strict.
template <int kCount, class T>
__device__ void check_pack([[maybe_unused]] const T* p) {
#if !defined(__CUDACC__)
  if (!is_aligned<T, kCount>(p)) emulator::fail("a pack is not aligned to its size");
#endif
}

template <int kCount, class T>
__device__ Pack<T, kCount> load_pack(const T* p) {
  check_pack<kCount>(p);
  return *reinterpret_cast<const Pack<T, kCount>*>(p);
}
template <int kCount, class T>
__device__ void store_pack(T* p, const Pack<T, kCount>& pack) {
  check_pack<kCount>(p);
  *reinterpret_cast<Pack<T, kCount>*>(p) = pack;
}

/// y[i] = f(x[i]), kCount at a time, by all threads of a one-dimensional grid; as packs where both addresses are `aligned` to them.
template <int kCount, class X, class Y, class F>
__device__ void map_packs(const X* x, Y* y, int64_t n, F&& f, bool aligned = true) {
  for (int64_t i = first_element() * kCount; i < n; i += element_step() * kCount) {
    if (aligned && i + kCount <= n) {
      const auto in = load_pack<kCount>(x + i);
      Pack<Y, kCount> out;
#pragma unroll
      for (int k = 0; k < kCount; ++k) out.values[k] = f(in.values[k]);
      store_pack(y + i, out);
    } else {
      for (int64_t k = i; k < n && k < i + kCount; ++k) y[k] = f(x[k]);
    }
  }
}

}  // namespace serin::kernels::cuda
