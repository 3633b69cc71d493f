// selection_table.cc: which operators of this family have a reference kernel: gathering, scattering, sorting, boxes.

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

std::span<const GenericRow> selection_kernels() { return {}; }

}  // namespace serin::kernels::ref
