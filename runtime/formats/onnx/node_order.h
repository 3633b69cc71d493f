// node_order.h: sorts nodes so that each comes after the nodes that compute its operands.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/formats/onnx/proto.h"

namespace serin::formats::onnx {

/// Returns the names that nested graphs read but that neither they nor a graph around them among `bodies` define, in order of first use.
std::vector<std::string_view> free_names(const std::vector<const GraphProto*>& bodies);

/// Keeps the order of the file if it is valid, as ONNX requires. Nodes on a cycle, and nodes that depend on them, come last.
std::vector<const NodeProto*> in_order(const std::vector<NodeProto>& nodes);

}  // namespace serin::formats::onnx
