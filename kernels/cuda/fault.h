// fault.h: Converts errors of the CUDA runtime to Fault.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "kernels/make_kernel.h"

namespace serin::kernels::cuda {

/// Nothing, or "cudaErrorIllegalAddress: an illegal memory access was encountered".
inline Fault fault_of(cudaError_t error) {
  if (error == cudaSuccess) return kOk;
  return std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error);
}

}  // namespace serin::kernels::cuda
