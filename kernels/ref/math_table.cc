// math_table.cc: which operators of this family have a reference kernel: functions of single elements, bits, windows, transforms, random numbers.

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

std::span<const GenericRow> math_kernels() { return {}; }

}  // namespace serin::kernels::ref
