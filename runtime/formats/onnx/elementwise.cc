// elementwise.cc: activations and other functions of single elements that have attributes, or that changed between versions.

#include <fmt/format.h>

#include <cmath>

#include "runtime/formats/onnx/operators.h"
#include "runtime/formats/onnx/tensor.h"

namespace serin::formats::onnx {

using graph::Op;

namespace {

struct Parameter {
  Op op;
  std::string_view key;
  double fallback;
};

constexpr Parameter kParameters[] = {
    {Op::kElu, "alpha", 1.0},         {Op::kHardSigmoid, "alpha", 0.2F}, {Op::kHardSigmoid, "beta", 0.5},
    {Op::kLeakyRelu, "alpha", 0.01F}, {Op::kSwish, "alpha", 1.0},
};

/// A bound of Clip as a number that means exactly the same; nothing where a double cannot hold it (large 64-bit integers, 16-bit floats).
std::optional<double> exact_number(const graph::Constant& constant) {
  const std::optional<double> number = graph::number_of(constant);
  const bool integer = constant.dtype == DType::kInt64 || constant.dtype == DType::kUInt64;
  return number && integer && std::abs(*number) > 0x1p53 ? std::nullopt : number;
}

}  // namespace

void import_with_alpha_beta(NodeImport& node, Op op) {
  graph::Attributes attributes;
  for (const Parameter& parameter : kParameters)
    if (parameter.op == op) attributes.emplace(parameter.key, node.number(parameter.key, parameter.fallback));
  node.emit(op, {node.input(0)}, std::move(attributes));
}

void import_is_inf(NodeImport& node, Op op) {
  node.emit(op, {node.input(0)},
            {{"detect_negative", node.integer("detect_negative", 1)}, {"detect_positive", node.integer("detect_positive", 1)}});
}

void import_gelu(NodeImport& node, Op op) {
  const std::string approximate = node.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    node.corrupt(fmt::format("approximate is '{}', 'none' and 'tanh' are allowed", approximate));
  node.emit(op, {node.input(0)}, {{"approximate", approximate}});
}

void import_mod(NodeImport& node, Op op) { node.emit(op, node.inputs(), {{"fmod", node.integer("fmod", 0)}}); }

/// Bounds: attributes before opset 11, operands since. Those that are known at load become attributes again.
void import_clip(NodeImport& node, Op op) {
  graph::Attributes attributes;
  std::vector<graph::ValueId> operands = {node.input(0), node.input(1), node.input(2)};
  size_t i = 1;
  for (const std::string_view key : {"min", "max"}) {
    if (node.opset() < 11 && node.has(key)) attributes.emplace(key, node.number(key, 0));
    if (const auto bound = node.constant(i); bound && exact_number(*bound)) {
      attributes.emplace(key, *exact_number(*bound));
      operands[i] = graph::kNone;
    }
    ++i;
  }
  node.emit(op, std::move(operands), std::move(attributes));
}

}  // namespace serin::formats::onnx
