// matmul_lt.h: MatMul by cuBLASLt.
#pragma once

#include "kernels/cuda/nvidia/library.h"

namespace serin::kernels::cuda {

std::unique_ptr<Kernel> prepare_matmul_lt(const Libraries& libraries, const OpDesc& desc, PrepareContext&, std::string& why);

}  // namespace serin::kernels::cuda
