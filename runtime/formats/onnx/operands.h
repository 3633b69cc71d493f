// operands.h: reads values that are attributes in some versions of an operator and operands in others.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/formats/onnx/node_import.h"

namespace serin::formats::onnx {

/// Stores integers in `attributes` if they are the attribute `key`, or operand `i` that is known at load. Otherwise returns the operand
/// (kNone if both are absent), which the caller passes on unchanged.
graph::ValueId integers_or_operand(NodeImport& node, size_t i, std::string_view key, graph::Attributes& attributes);

/// Adds the dtype of attribute `key`, by name; adds nothing if it is absent.
void add_dtype(NodeImport& node, std::string_view key, graph::Attributes& attributes);

}  // namespace serin::formats::onnx
