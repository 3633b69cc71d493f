// matmul_lt.h: MatMul by cuBLASLt.
#pragma once

#include "kernels/cuda/nvidia/library.h"

namespace serin::kernels::cuda {

/// Whether the library's epilogue computes it; all others are a pass over the result.
bool activates_lt(UnaryFn activation);
std::unique_ptr<Kernel> prepare_matmul_lt(const Libraries& libraries, const OpDesc& desc, PrepareContext&, std::string& why);

}  // namespace serin::kernels::cuda
