// node_order.h: nodes in an order in which each comes after those that make what it reads.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/formats/onnx/proto.h"

namespace serin::formats::onnx {

/// Names that graphs within each other read, and neither define themselves nor find in a graph around them among `bodies`; in order of first use.
std::vector<std::string_view> free_names(const std::vector<const GraphProto*>& bodies);

/// The order of the file where that will do, as ONNX demands. Nodes on a cycle, and what reads from them, come last.
std::vector<const NodeProto*> in_order(const std::vector<NodeProto>& nodes);

}  // namespace serin::formats::onnx
