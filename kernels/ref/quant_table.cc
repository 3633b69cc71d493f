// quant_table.cc: which operators of this family have a reference kernel: quantisation and narrow types.

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

std::span<const GenericRow> quant_kernels() { return {}; }

}  // namespace serin::kernels::ref
