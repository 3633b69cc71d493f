// thread.h: A kernel thread's shared memory and position in the grid.
#pragma once

#if !defined(__CUDACC_RTC__)
#include <cuda_runtime.h>
#endif

#include <cstdint>

namespace serin::kernels::cuda {

/// This block's dynamic shared memory, aligned for every type.
template <class T>
__device__ inline T* shared_memory() {
#if defined(__CUDACC__)
  extern __shared__ __align__(128) unsigned char bytes[];
  return reinterpret_cast<T*>(bytes);
#else
  return static_cast<T*>(emulator::shared_memory());
#endif
}

/// The first element of this thread and the distance to its next, in a one-dimensional grid.
__device__ inline int64_t first_element() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline int64_t element_step() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

}  // namespace serin::kernels::cuda
