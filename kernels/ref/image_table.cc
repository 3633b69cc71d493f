// image_table.cc: which operators of this family have a reference kernel: resizing, sampling, regions, and the convolutions beside Conv.

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

std::span<const GenericRow> image_kernels() { return {}; }

}  // namespace serin::kernels::ref
