// text_table.cc: which operators of this family have a reference kernel: strings.

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

std::span<const GenericRow> text_kernels() { return {}; }

}  // namespace serin::kernels::ref
