// dynamic_operators.cc: which operators of this family are read: sequences, optionals and Scan.

#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {

OperatorFamily dynamic_operators() { return {"", {}}; }

}  // namespace serin::formats::onnx
