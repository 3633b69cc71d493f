// launch.h: Starts our own kernels.
//
//   return launch(stream, {blocks_for(n, kBlockThreads * kItems), kBlockThreads}, scale<float>, x, y, n);
//
// The source of every kernel is compiled twice: by nvcc for devices, and by g++ with tests/gpu/emulator first in the include path. There
// the threads of a block are fibers. So a kernel uses only the features of that <cuda_runtime.h>, and takes its shared memory from
// shared_memory().
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/cuda/fault.h"
#include "kernels/cuda/thread.h"

namespace serin::kernels::cuda {

struct Grid {
  dim3 blocks, threads;
  size_t shared_bytes = 0;
};

template <class... P, class... A>
Fault launch(const Stream& stream, const Grid& grid, void (*kernel)(P...), A... arguments) {
  if (grid.blocks.x == 0 || grid.blocks.y == 0 || grid.blocks.z == 0) return kOk;  // no elements: nothing to do
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream.queue);
  return fault_of(cudaLaunchKernelEx(&config, kernel, static_cast<P>(arguments)...));
}

/// Whether launches of `kernel` on the current device may use `bytes` of shared memory; called when a kernel is prepared. The limit belongs
/// to the kernel and not to a launch, and other threads launch it meanwhile. So it is set to `most`, which is the same for all callers, or
/// to the device's maximum.
template <class... P>
bool allow_shared(void (*kernel)(P...), size_t bytes, size_t most, std::string& why) {
  int device = 0, there = 0;
  const auto fails = [&why](cudaError_t error) {
    if (error == cudaSuccess) return false;
    why = *fault_of(error);
    cudaGetLastError();
    return true;
  };
  if (fails(cudaGetDevice(&device)) || fails(cudaDeviceGetAttribute(&there, cudaDevAttrMaxSharedMemoryPerBlockOptin, device))) return false;
  if (bytes > static_cast<size_t>(there)) {
    why = "needs " + std::to_string(bytes) + " bytes of shared memory, the device has " + std::to_string(there);
    return false;
  }
  const int limit = std::min(there, static_cast<int>(most));
  return !fails(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limit));
}

/// Threads of a block, and their warps, for kernels that have no reason for another number.
constexpr int kBlockThreads = 256, kBlockWarps = kBlockThreads / 32;

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Blocks for n elements at `per_block` each; kernels loop if a grid cannot have enough.
inline unsigned blocks_for(int64_t n, int64_t per_block) {
  return static_cast<unsigned>(std::min<int64_t>(ceil_div(n, per_block), int64_t{1} << 30));
}

}  // namespace serin::kernels::cuda
