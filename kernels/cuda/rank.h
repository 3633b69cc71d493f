// rank.h: Computes the position at which each thread of a block writes its result, in the order of the threads.
#pragma once

#include "kernels/cuda/launch.h"

namespace serin::kernels::cuda {

/// The number of threads of the block before this one with `true`; `total`: of all threads. `of_warp` has one number for each warp and is
/// free again afterwards.
__device__ inline uint32_t rank_in_block(bool mine, uint32_t* of_warp, uint32_t& total) {
  const unsigned votes = __ballot_sync(0xFFFFFFFFu, mine);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) of_warp[warp] = static_cast<uint32_t>(__popc(votes));
  __syncthreads();
  uint32_t before = 0;
  total = 0;
  for (unsigned i = 0; i < blockDim.x / 32; ++i) {
    if (i == warp) before = total;
    total += of_warp[i];
  }
  __syncthreads();
  return before + static_cast<uint32_t>(__popc(votes & ((1u << lane) - 1)));
}

}  // namespace serin::kernels::cuda
