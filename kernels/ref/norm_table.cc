// norm_table.cc: which operators of this family have a reference kernel: normalisations, losses, training steps.

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

std::span<const GenericRow> norm_kernels() { return {}; }

}  // namespace serin::kernels::ref
