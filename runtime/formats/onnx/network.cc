// network.cc: reads convolution, pooling, products and normalisation. Attributes with which a kernel would divide by zero or run
// indefinitely (a stride of 0, a group of 0) are refused here; shape inference refuses those that depend on shapes.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {

using graph::Op;

namespace {

void add_positive(NodeImport& node, std::string_view key, graph::Attributes& attributes) {
  auto values = node.integers(key);
  if (!values) return;
  if (std::ranges::any_of(*values, [](int64_t v) { return v < 1 || v > INT32_MAX; }))
    node.corrupt(fmt::format("{} is [{}]: each must be at least 1 and fit 32 bits", key, fmt::join(*values, ",")));
  attributes.emplace(key, std::move(*values));
}

/// kernel_shape, strides, dilations, pads, auto_pad: as ONNX has them, checked.
graph::Attributes window_attributes(NodeImport& node) {
  graph::Attributes attributes;
  for (const std::string_view key : {"kernel_shape", "strides", "dilations"}) add_positive(node, key, attributes);
  if (auto pads = node.integers("pads")) {
    if (std::ranges::any_of(*pads, [](int64_t v) { return v < 0 || v > INT32_MAX; }))
      node.corrupt(fmt::format("pads is [{}]: negative pads and pads beyond 32 bits make no sense", fmt::join(*pads, ",")));
    attributes.emplace("pads", std::move(*pads));
  }
  const std::string auto_pad = node.text("auto_pad", "NOTSET");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER" || auto_pad == "VALID") {
    attributes.erase("pads");  // some exporters write both; auto_pad wins
    attributes.emplace("auto_pad", auto_pad);
  } else if (auto_pad != "NOTSET") {
    node.corrupt(fmt::format("auto_pad is '{}'; NOTSET, SAME_UPPER, SAME_LOWER and VALID are allowed", auto_pad));
  }
  return attributes;
}

}  // namespace

graph::Attributes conv_attributes(NodeImport& node) {
  graph::Attributes attributes = window_attributes(node);
  const int64_t group = node.integer("group", 1);
  if (group < 1) node.corrupt(fmt::format("group is {}: it must be at least 1", group));
  attributes.emplace("group", group);
  return attributes;
}

void import_conv(NodeImport& node, Op op) {
  graph::Attributes attributes = conv_attributes(node);
  node.emit(op, node.inputs(), std::move(attributes));
}

graph::Attributes pool_attributes(NodeImport& node, Op op) {
  graph::Attributes attributes = window_attributes(node);
  if (!attributes.contains("kernel_shape")) node.corrupt("attribute 'kernel_shape' is missing");
  if (op == Op::kAveragePool) attributes.emplace("count_include_pad", node.integer("count_include_pad", 0));
  attributes.emplace("ceil_mode", node.integer("ceil_mode", 0));
  return attributes;
}

void import_pool(NodeImport& node, Op op) {
  graph::Attributes attributes = pool_attributes(node, op);
  const int64_t storage_order = op == Op::kMaxPool ? node.integer("storage_order", 0) : 0;  // says how the indices are counted
  if (node.wants_output(1)) {
    op = Op::kMaxPoolWithIndices;
    attributes.emplace("storage_order", storage_order);
  }
  node.emit(op, {node.input(0)}, std::move(attributes));
}

void import_gemm(NodeImport& node, Op op) {
  node.emit(op, node.inputs(),
            {{"alpha", node.number("alpha", 1)},
             {"beta", node.number("beta", 1)},
             {"transA", node.integer("transA", 0)},
             {"transB", node.integer("transB", 0)}});
}

}  // namespace serin::formats::onnx
