// old_opsets.h: converts nodes of opsets 1 to 6 to newer forms, so that the importers need to know no opset before 7.
#pragma once

#include "runtime/formats/onnx/node_import.h"
#include "runtime/formats/onnx/proto.h"

namespace serin::formats::onnx {

inline constexpr int64_t kFirstModernOpset = 7;

/// Returns the node with its old attributes converted: those that later opsets renamed, retyped or gave another default.
NodeProto modern_attributes(const NodeProto& proto);

/// Converts operands to the newer form: aligned for the NumPy rule, with the shape of a Reshape and the repeats of a Tile as operands.
void modernise_operands(NodeImport& node);

}  // namespace serin::formats::onnx
