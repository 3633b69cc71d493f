// sizes.h: Results whose size is known only in a run.
//
// A kernel writes the existing part of the result, and its size to the output after it (backend.h). The host waits for that number alone,
// and later steps work on a view of the right size (the engine's runner_device.cc).
#pragma once

#include "kernels/cuda/block.h"

namespace serin::kernels::cuda {

/// The output for the size of a kernel with one result.
inline int64_t* size_of_result(Outputs out) { return out[1].as<int64_t>(); }

/// Without a kernel: there is no input.
inline Fault leave_empty(const Stream& stream, Outputs out) {
  return fault_of(cudaMemsetAsync(size_of_result(out), 0, sizeof(int64_t), static_cast<cudaStream_t>(stream.queue)));
}

struct Counted {
  int64_t before, total;
};

struct PlusCounted {
  __device__ Counted operator()(const Counted& a, const Counted& b) const { return {a.before + b.before, a.total + b.total}; }
};

/// The sum of the counts before number `at`, and that of all. By a block of kWarps warps; `shared` has room for kWarps counts.
template <int kWarps>
__device__ Counted count_around(const uint32_t* counts, int64_t size, int64_t at, Counted* shared) {
  Counted own{0, 0};
  for (int64_t i = threadIdx.x; i < size; i += int64_t{32} * kWarps) {
    own.total += counts[i];
    if (i < at) own.before += counts[i];
  }
  return combine_block<kWarps>(own, PlusCounted(), shared);
}

}  // namespace serin::kernels::cuda
