// table.h: the kernels of a device, by kind of operator.
#pragma once

#include <vector>

#include "kernels/backend.h"

namespace serin::kernels::cuda {

/// `products`: rows of MatMul that go before our own; kernels that multiply inside (LSTM...) ask them, too.
KernelTable make_table(std::vector<KernelRow> products = {});

}  // namespace serin::kernels::cuda
