// launch.h: how a kernel of ours is started.
//
//   return launch(stream, {blocks_for(n, kThreads * kItems), kThreads}, scale<float>, x, y, n);
//
// The source of every kernel is compiled twice: by nvcc for devices, and by g++ with tests/gpu/emulator in front of the include path, where the threads of
// a block are fibers. So a kernel keeps to what <cuda_runtime.h> there knows, and takes its shared memory from shared_memory().
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
  if (grid.blocks.x == 0 || grid.blocks.y == 0 || grid.blocks.z == 0) return kOk;  // no elements, nothing to do
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream.queue);
  return fault_of(cudaLaunchKernelEx(&config, kernel, static_cast<P>(arguments)...));
}

/// Whether launches of `kernel` on the current device may take `bytes` of shared memory; asked when a kernel is prepared. The limit is not one launch's but the
/// kernel's, and other threads launch it meanwhile: it is set to `most`, which is the same for whoever asks, or to as much as the device has.
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

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Blocks for n elements at `per_block` each; kernels loop where there are more than a grid holds.
inline unsigned blocks_for(int64_t n, int64_t per_block) {
  return static_cast<unsigned>(std::min<int64_t>(ceil_div(n, per_block), int64_t{1} << 30));
}

}  // namespace serin::kernels::cuda
