// classifier_table.cc: which operators of this family have a reference kernel: the operators of ai.onnx.ml.

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

std::span<const GenericRow> classifier_kernels() { return {}; }

}  // namespace serin::kernels::ref
