// fault.h: Converts errors of the CUDA runtime to Fault.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "kernels/make_kernel.h"

namespace serin::kernels::cuda {

/// Nothing, or "cudaErrorIllegalAddress: an illegal memory access was encountered". Clears the thread's last error: a library that asks for it after a launch of
/// its own would take it for its failure.
inline Fault fault_of(cudaError_t error) {
  if (error == cudaSuccess) return kOk;
  cudaGetLastError();
  return std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error);
}

}  // namespace serin::kernels::cuda
