// classifier_operators.cc: which operators of this family are read: ai.onnx.ml.

#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {

OperatorFamily classifier_operators() { return {"ai.onnx.ml", {}}; }

}  // namespace serin::formats::onnx
