// math_operators.cc: which operators of this family are read: functions of single elements, bits, windows, transforms, random numbers.

#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {

OperatorFamily math_operators() { return {"", {}}; }

}  // namespace serin::formats::onnx
