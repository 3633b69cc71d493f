// old_opsets.h: nodes of opsets 1 to 6 as newer ones would be, so that the functions that lower them need to know no opset before 7.
#pragma once

#include "runtime/formats/onnx/node_import.h"
#include "runtime/formats/onnx/proto.h"

namespace serin::formats::onnx {

inline constexpr int64_t kFirstModernOpset = 7;

/// The node with attributes that were renamed, retyped or given another default since under their newer names.
NodeProto modern_attributes(const NodeProto& proto);

/// Operands as newer versions take them: aligned for the NumPy rule, and the shape of a Reshape and the repeats of a Tile among them.
void modernise_operands(NodeImport& node);

}  // namespace serin::formats::onnx
