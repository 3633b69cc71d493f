// text_operators.cc: which operators of this family are read: strings.

#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {

OperatorFamily text_operators() { return {"", {}}; }

}  // namespace serin::formats::onnx
