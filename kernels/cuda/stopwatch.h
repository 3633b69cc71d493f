// stopwatch.h: how long work on a stream takes, measured by the device.
#pragma once

#include <cuda_runtime.h>

#include <optional>

namespace serin::kernels::cuda {

/// Milliseconds of one call of `run`, the mean of five after a first one; nothing where one fails. `run` enqueues on `stream` and answers whether it could.
template <class F>
std::optional<double> time_on(cudaStream_t stream, F&& run) {
  constexpr int kRuns = 5;
  cudaEvent_t begin = nullptr, end = nullptr;
  float milliseconds = 0;
  bool works = run() && cudaEventCreate(&begin) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess &&
               cudaEventRecord(begin, stream) == cudaSuccess;
  for (int i = 0; works && i < kRuns; ++i) works = run();
  works = works && cudaEventRecord(end, stream) == cudaSuccess && cudaEventSynchronize(end) == cudaSuccess &&
          cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess;
  if (begin) cudaEventDestroy(begin);
  if (end) cudaEventDestroy(end);
  return works ? std::optional<double>(milliseconds / kRuns) : std::nullopt;
}

}  // namespace serin::kernels::cuda
