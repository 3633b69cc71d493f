// sized_rows.h: Kernel families whose result sizes depend on the data.
//
// They return kernels as in rows.h, but the sizes of their operands may be bounds, and a run has one more output, for the size (sizes.h).
#pragma once

#include "kernels/cuda/rows.h"

namespace serin::kernels::cuda {

// compact.cu
Prepared prepare_non_zero(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_compress(const OpDesc&, PrepareContext&, std::string& why);
// suppression.cu
Prepared prepare_non_max_suppression(const OpDesc&, PrepareContext&, std::string& why);

}  // namespace serin::kernels::cuda
