// norm_operators.cc: which operators of this family are read: normalisations, losses, training steps.

#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {

OperatorFamily norm_operators() { return {"", {}}; }

}  // namespace serin::formats::onnx
