// operands.h: what was an attribute in one version of an operator and is an operand in another.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/formats/onnx/node_import.h"

namespace serin::formats::onnx {

/// Integers that are the attribute `key`, or operand `i` where that is known at load: into `attributes`. Otherwise the operand (kNone where
/// there is neither), to be passed on as it is.
graph::ValueId integers_or_operand(NodeImport& node, size_t i, std::string_view key, graph::Attributes& attributes);

/// The dtype that attribute `key` means, by name; nothing where it is absent.
void add_dtype(NodeImport& node, std::string_view key, graph::Attributes& attributes);

}  // namespace serin::formats::onnx
