// dense.h: y[i] = f(x[i]) over dense operands, 16 bytes of the widest type at a time.
//
// At an address that is no multiple of a pack the same kernel goes one element after the other. Another kernel would double the code of every function.
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/cuda/pack.h"

namespace serin::kernels::cuda {

template <class T, class Out>
inline constexpr int kPack = 16 / static_cast<int>(sizeof(T) > sizeof(Out) ? sizeof(T) : sizeof(Out));

/// y[i] = f(x[i]); `aligned`: packs may be loaded and stored.
template <int kCount, class T, class Out, class F>
__global__ void map_dense(F f, const T* x, Out* y, int64_t n, bool aligned) {
  map_packs<kCount>(x, y, n, f, aligned);
}

template <class T, class Out, class F>
Fault run_dense(const Stream& stream, F f, const T* x, Out* y, int64_t n) {
  constexpr int kCount = kPack<T, Out>;
  const bool aligned = is_aligned<T, kCount>(x) && is_aligned<Out, kCount>(y);
  return launch(stream, {blocks_for(n, int64_t{kBlockThreads} * kCount), kBlockThreads}, map_dense<kCount, T, Out, F>, f, x, y, n, aligned);
}

}  // namespace serin::kernels::cuda
