// quant_operators.cc: which operators of this family are read: quantisation and narrow types.

#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {

OperatorFamily quant_operators() { return {"", {}}; }

}  // namespace serin::formats::onnx
