// library.h: State that the kernels of NVIDIA's libraries share: handles, open as long as the backend, and the choice among algorithms.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>

#include "kernels/cuda/fault.h"
#include "kernels/cuda/tactics.h"

namespace serin::kernels::cuda {

struct Libraries {
  cublasLtHandle_t blas = nullptr;  ///< thread-safe
  std::shared_ptr<Tactics> tactics;
};

inline Fault fault_of(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return kOk;
  return std::string("cuBLASLt: ") + cublasLtGetStatusString(status);
}

}  // namespace serin::kernels::cuda
