// image_operators.cc: which operators of this family are read: resizing, sampling, regions, and the convolutions beside Conv.

#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {

OperatorFamily image_operators() { return {"", {}}; }

}  // namespace serin::formats::onnx
