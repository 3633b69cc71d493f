#include "runtime/formats/onnx/operands.h"

#include <fmt/format.h>

#include "runtime/formats/onnx/tensor.h"

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

void add_dtype(NodeImport& node, std::string_view key, graph::Attributes& attributes) {
  if (!node.has(key)) return;
  const auto dtype = dtype_from(node.required_integer(key));
  if (!dtype) return node.fail(dtype.error().code, fmt::format("{}: {}", key, dtype.error().message));
  attributes.emplace(key, std::string(dtype_name(*dtype)));
}

}  // namespace serin::formats::onnx
