// selection_operators.cc: which operators of this family are read: gathering, scattering, sorting, boxes.

#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {

OperatorFamily selection_operators() { return {"", {}}; }

}  // namespace serin::formats::onnx
