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

void import_cast(NodeImport& node, Op op) {
  node.ignore("saturate");    // for 8-bit floats only, which are refused
  node.ignore("round_mode");  // for 8-bit exponents only
  const auto dtype = dtype_from(node.required_integer("to"));
  if (!dtype) return node.fail(dtype.error().code, dtype.error().message);
  node.emit(op, {node.input(0)}, {{"to", std::string(dtype_name(*dtype))}});
}

/// Nothing is dropped at inference.
void import_dropout(NodeImport& node, Op op) {
  node.ignore("ratio");
  node.ignore("seed");
  if (node.wants_output(1)) node.unsupported("the mask is asked for");
  if (node.input(2) != graph::kNone) {
    const auto training = node.constant(2);
    const auto mode = training ? graph::integers_of(*training) : std::nullopt;
    if (!mode || mode->size() != 1) return node.unsupported("training_mode is computed");
    if (mode->front() != 0) return node.unsupported("training_mode is on; export the model for inference");
  }
  node.emit(op, {node.input(0)});
}

/// x where positive, slope * x elsewhere: relu(x) - slope * relu(-x).
void import_prelu(NodeImport& node, Op op) {
  const graph::ValueId positive = node.step(Op::kRelu, "positive", {node.input(0)});
  const graph::ValueId negated = node.step(Op::kNeg, "negated", {node.input(0)});
  const graph::ValueId negative = node.step(Op::kRelu, "negative", {negated});
  node.emit(op, {positive, node.step(Op::kMul, "scaled", {negative, node.input(1)})});
}

/// x * tanh(softplus(x)).
void import_mish(NodeImport& node, Op op) {
  const graph::ValueId softplus = node.step(Op::kSoftplus, "softplus", {node.input(0)});
  node.emit(op, {node.input(0), node.step(Op::kTanh, "tanh", {softplus})});
}

}  // namespace serin::formats::onnx
