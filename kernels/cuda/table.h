// table.h: the kernels of a device, by kind of operator.
#pragma once

#include "kernels/backend.h"

namespace serin::kernels::cuda {

KernelTable make_table();

}  // namespace serin::kernels::cuda
