// network.cc: convolution, pooling, products and normalisation. What would make a kernel divide by zero or run for ever (a stride of 0, a
// group of 0) ends here; what depends on shapes ends in shape inference.

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

void import_conv(NodeImport& node, Op op) {
  graph::Attributes attributes = window_attributes(node);
  const int64_t group = node.integer("group", 1);
  if (group < 1) node.corrupt(fmt::format("group is {}: it must be at least 1", group));
  attributes.emplace("group", group);
  node.emit(op, node.inputs(), std::move(attributes));
}

void import_pool(NodeImport& node, Op op) {
  graph::Attributes attributes = window_attributes(node);
  if (!attributes.contains("kernel_shape")) node.corrupt("attribute 'kernel_shape' is missing");
  if (node.wants_output(1)) node.unsupported("the indices are asked for");
  if (op == Op::kMaxPool) node.ignore("storage_order");  // says how the indices are counted
  if (op == Op::kAveragePool) attributes.emplace("count_include_pad", node.integer("count_include_pad", 0));
  attributes.emplace("ceil_mode", node.integer("ceil_mode", 0));
  node.emit(op, {node.input(0)}, std::move(attributes));
}

void import_gemm(NodeImport& node, Op op) {
  node.emit(op, node.inputs(),
            {{"alpha", node.number("alpha", 1)},
             {"beta", node.number("beta", 1)},
             {"transA", node.integer("transA", 0)},
             {"transB", node.integer("transB", 0)}});
}

void import_batch_normalization(NodeImport& node, Op op) {
  node.ignore("momentum");
  if (node.opset() >= 14 && node.flag("training_mode", false)) node.unsupported("training_mode is on; export the model for inference");
  if (node.opset() < 9 && !node.flag("spatial", true)) node.unsupported("normalises each element by statistics of its own (spatial = 0)");
  for (size_t i = 1; i < node.output_count(); ++i)
    if (node.wants_output(i)) node.unsupported("asks for the statistics; export the model for inference");
  node.emit(op, node.inputs(), {{"epsilon", node.number("epsilon", 1e-5F)}});
}

void import_layer_normalization(NodeImport& node, Op op) {
  if (node.integer("stash_type", 1) != 1) node.unsupported("computes in another type than float (stash_type)");
  if (node.wants_output(1) || node.wants_output(2)) node.unsupported("asks for the statistics; export the model for inference");
  node.emit(op, node.inputs(), {{"axis", node.integer("axis", -1)}, {"epsilon", node.number("epsilon", 1e-5F)}});
}

}  // namespace serin::formats::onnx
