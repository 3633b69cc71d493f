#include "runtime/formats/onnx/operands.h"

#include <fmt/format.h>

namespace serin::formats::onnx {

graph::ValueId integers_or_operand(NodeImport& node, size_t i, std::string_view key, graph::Attributes& attributes) {
  if (node.has(key)) {
    if (node.input(i) != graph::kNone) node.corrupt(fmt::format("has {} as an attribute and as an input", key));
    if (auto values = node.integers(key)) attributes.emplace(key, std::move(*values));
    return graph::kNone;
  }
  const auto constant = node.constant(i);
  if (!constant) return node.input(i);
  auto values = graph::integers_of(*constant);
  if (!values || constant->shape.rank() > 1) {
    node.corrupt(fmt::format("{} is {}{}, a list of integers is needed", key, dtype_name(constant->dtype), constant->shape.str()));
    return graph::kNone;
  }
  attributes.emplace(key, std::move(*values));
  return graph::kNone;
}

}  // namespace serin::formats::onnx
