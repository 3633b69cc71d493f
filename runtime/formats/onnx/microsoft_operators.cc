// microsoft_operators.cc: which operators of this family are read: com.microsoft, what quantisers and optimisers write.

#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {

OperatorFamily microsoft_operators() { return {"com.microsoft", {}}; }

}  // namespace serin::formats::onnx
