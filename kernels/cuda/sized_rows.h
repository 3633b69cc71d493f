// sized_rows.h: kernel families whose results have sizes that the data decides. They answer as those of rows.h do, but the sizes of their operands may be bounds,
// and a run brings one output more, for the size (sizes.h).
#pragma once

#include "kernels/cuda/rows.h"

namespace serin::kernels::cuda {

// compact.cu
Prepared prepare_non_zero(const OpDesc&, PrepareContext&, std::string& why);
Prepared prepare_compress(const OpDesc&, PrepareContext&, std::string& why);
// suppression.cu
Prepared prepare_non_max_suppression(const OpDesc&, PrepareContext&, std::string& why);

}  // namespace serin::kernels::cuda
