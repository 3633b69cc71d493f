// quant.h: importers that the quantised operators of ONNX and of com.microsoft share.
#pragma once

#include "runtime/formats/onnx/operators.h"
#include "runtime/formats/onnx/tensor.h"

namespace serin::formats::onnx {

void import_quantize_linear(NodeImport& node, graph::Op op);
void import_dequantize_linear(NodeImport& node, graph::Op op);

}  // namespace serin::formats::onnx
