// microsoft_fused.cc: products and convolutions with a transposition, a scale, a sum or an activation in one node, written out again.

#include <fmt/format.h>

#include "runtime/formats/onnx/microsoft.h"
#include "runtime/formats/onnx/operators.h"

namespace serin::formats::onnx {

using graph::kNone;
using graph::Op;
using graph::ValueId;

namespace {

/// [m, batch..., k] with its first axis moved to before the last: what transBatch says.
ValueId batches_first(NodeImport& node, std::string_view name, size_t operand) {
  const auto rank = node.rank(operand);
  if (!rank || *rank < 3) {
    node.unsupported("transposes the batch of an operand whose rank is not known");
    return node.input(operand);
  }
  Integers perm;
  for (size_t axis = 1; axis + 1 < *rank; ++axis) perm.push_back(static_cast<int64_t>(axis));
  perm.push_back(0);
  perm.push_back(static_cast<int64_t>(*rank) - 1);
  return node.step(Op::kTranspose, name, {node.input(operand)}, {{"perm", perm}});
}

struct Activation {
  std::string_view name;
  Op op;
  std::string_view first, second;  // attributes of its parameters
};

constexpr Activation kActivations[] = {
    {"Relu", Op::kRelu, {}, {}},         {"Sigmoid", Op::kSigmoid, {}, {}},
    {"Tanh", Op::kTanh, {}, {}},         {"LeakyRelu", Op::kLeakyRelu, "alpha", {}},
    {"Elu", Op::kElu, "alpha", {}},      {"HardSigmoid", Op::kHardSigmoid, "alpha", "beta"},
    {"Clip", Op::kClip, "min", "max"},   {"HardSwish", Op::kHardSwish, {}, {}},
    {"Softplus", Op::kSoftplus, {}, {}},
};

/// The result of the node: x, activated as the attribute says.
void emit_activated(NodeImport& node, ValueId x, const std::vector<double>& parameters) {
  const std::string name = node.text("activation", "");
  if (name.empty()) {
    node.emit(Op::kIdentity, {x});
    return;
  }
  for (const Activation& activation : kActivations) {
    if (activation.name != name) continue;
    graph::Attributes attributes;
    const std::string_view keys[] = {activation.first, activation.second};
    for (size_t i = 0; i < 2 && i < parameters.size(); ++i) {
      if (!keys[i].empty()) attributes.emplace(keys[i], parameters[i]);
    }
    node.emit(activation.op, {x}, std::move(attributes));
    return;
  }
  node.unsupported(fmt::format("activation '{}'", name));
}

}  // namespace

/// alpha a b, with the last two axes of either swapped, or its first axis moved inwards.
void import_fused_matmul(NodeImport& node, Op op) {
  graph::Attributes attributes;
  for (const char* key : {"transA", "transB"}) {
    if (node.flag(key, false)) attributes.emplace(key, int64_t{1});
  }
  const ValueId a = node.flag("transBatchA", false) ? batches_first(node, "a", 0) : node.input(0);
  const ValueId b = node.flag("transBatchB", false) ? batches_first(node, "b", 1) : node.input(1);
  const double alpha = node.number("alpha", 1);
  if (alpha == 1) {
    node.emit(op, {a, b}, std::move(attributes));
    return;
  }
  const ValueId product = node.step(op, "product", {a, b}, std::move(attributes));
  node.emit(Op::kMul, {product, number_like(node, "alpha", alpha, a)});
}

void import_fused_gemm(NodeImport& node, Op op) {
  const ValueId y = node.step(op, "product", node.inputs(),
                              {{"alpha", node.number("alpha", 1)},
                               {"beta", node.number("beta", 1)},
                               {"transA", node.integer("transA", 0)},
                               {"transB", node.integer("transB", 0)}});
  std::vector<double> parameters;
  for (const char* key : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (node.has(key)) parameters.push_back(node.number(key, 0));
  }
  emit_activated(node, y, parameters);
}

/// act(conv(x) + z).
void import_fused_conv(NodeImport& node, Op op) {
  graph::Attributes attributes = conv_attributes(node);
  std::vector<ValueId> operands = {node.input(0), node.input(1), node.input(2)};
  if (operands.back() == kNone) operands.pop_back();
  const ValueId y = add_step(node, "sum", node.step(op, "conv", std::move(operands), std::move(attributes)), node.input(3));
  emit_activated(node, y, node.numbers("activation_params").value_or(std::vector<double>{}));
}

}  // namespace serin::formats::onnx
