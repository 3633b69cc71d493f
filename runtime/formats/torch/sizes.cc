// sizes.cc: sizes of tensors and arithmetic on them, which programs with open sizes have as nodes; and nodes about the program itself.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::Op;
using graph::ValueId;

void import_size(NodeImport& node, Op) {
  const ValueId x = node.tensor(node.has("self") ? "self" : "a");
  node.give(node.sized(x, static_cast<size_t>(node.axis(node.integer("dim", 0), node.rank(x)))));
}

void import_element_count(NodeImport& node, Op op) { node.give(node.b.add(op, {node.tensor("self")})); }

/// The value of a tensor of one element becomes a size.
void import_item(NodeImport& node, Op) {
  const ValueId x = node.b.reshape(node.tensor("self"), {});
  node.give(node.node().results.size() == 1 && node.node().results[0].kind == "as_sym_int" ? node.b.cast(x, DType::kInt64) : x);
}

/// A number or a size as i64; a float as f32.
ValueId argument(NodeImport& node, size_t i) {
  if (i >= node.node().positional.size()) return node.corrupt("has too few arguments"), node.b.number(DType::kInt64, 0);
  return node.scalar(node.size_of(node.node().positional[i]));
}

void import_size_arithmetic(NodeImport& node, Op op) { node.give(node.b.add(op, {argument(node, 0), argument(node, 1)})); }

/// Sizes are not negative, and Div rounds toward zero as floor division does then. Negative numbers get the difference.
void import_size_quotient(NodeImport& node, Op) {
  const ValueId a = argument(node, 0), b = argument(node, 1);
  const ValueId rest = node.b.add(Op::kMod, {a, b});
  node.give(node.b.add(Op::kDiv, {node.b.add(Op::kSub, {a, rest}), b}));
}

void import_size_itself(NodeImport& node, Op) { node.give(argument(node, 0)); }
void import_size_negation(NodeImport& node, Op op) { node.give(node.b.add(op, {argument(node, 0)})); }

void import_not_equal(NodeImport& node, Op) {
  node.give(node.b.add(Op::kNot, {node.b.add(Op::kEqual, {argument(node, 0), argument(node, 1)})}));
}

/// Assertions about sizes hold for what the program was exported for; shape inference finds real contradictions.
void import_assertion(NodeImport& node, Op) { node.give(std::vector<ValueId>()); }

/// A graph that runs under a mode of autograd or mixed precision, after `skip` arguments.
void import_wrapped(NodeImport& node, Op) {
  const auto& arguments = node.node().positional;
  size_t at = 0;
  while (at < arguments.size() && arguments[at].kind != "as_graph") ++at;
  if (at == arguments.size()) return node.corrupt("has no graph");
  if (node.node().target.find("autocast") != std::string::npos) {  // device, type, enabled, ...
    const auto enabled = std::ranges::find(arguments, "as_bool", &Argument::kind);
    if (enabled == arguments.end() || enabled->value.boolean() != false)
      return node.unsupported("runs under autocast; export the model without it");
  }
  std::vector<ValueId> inputs;
  for (size_t i = at + 1; i < arguments.size(); ++i) {
    if (arguments[i].kind == "as_tensor") {
      const std::string name = arguments[i].value["name"].text_or("");
      inputs.push_back(node.scope().find(name));
      if (inputs.back() == graph::kNone) return node.corrupt(fmt::format("reads '{}', which nothing before it makes", name));
    } else {
      inputs.push_back(node.scalar(node.size_of(arguments[i])));
    }
  }
  auto outputs = node.scope().inlined(arguments[at].value["graph"], inputs);
  if (!outputs) return node.b.fail(outputs.error().code, outputs.error().message);
  node.give(std::move(*outputs));
}

constexpr OperatorRow kSizeRows[] = {
    {"aten._local_scalar_dense", import_item},
    {"aten.item", import_item},
    {"aten.numel", import_element_count, Op::kSize},
    {"aten.sym_numel", import_element_count, Op::kSize},
    {"aten.sym_size", import_size},
    {"operator.add", import_size_arithmetic, Op::kAdd},
    {"operator.eq", import_size_arithmetic, Op::kEqual},
    {"operator.floordiv", import_size_quotient},
    {"operator.ge", import_size_arithmetic, Op::kGreaterOrEqual},
    {"operator.gt", import_size_arithmetic, Op::kGreater},
    {"operator.le", import_size_arithmetic, Op::kLessOrEqual},
    {"operator.lt", import_size_arithmetic, Op::kLess},
    {"operator.mod", import_size_arithmetic, Op::kMod},
    {"operator.mul", import_size_arithmetic, Op::kMul},
    {"operator.ne", import_not_equal},
    {"operator.neg", import_size_negation, Op::kNeg},
    {"operator.sub", import_size_arithmetic, Op::kSub},
    {"torch.sym_int", import_size_itself},
    {"torch.sym_max", import_size_arithmetic, Op::kMax},
    {"torch.sym_min", import_size_arithmetic, Op::kMin},
};

constexpr OperatorRow kProgramRows[] = {
    {"aten._assert_async", import_assertion},
    {"aten._assert_scalar", import_assertion},
    {"aten._assert_tensor_metadata", import_assertion},
    {"aten.sym_constrain_range", import_assertion},
    {"aten.sym_constrain_range_for_size", import_assertion},
    {"higher_order.wrap_with_autocast", import_wrapped},
    {"higher_order.wrap_with_set_grad_enabled", import_wrapped},
};

}  // namespace

std::span<const OperatorRow> size_operators() { return kSizeRows; }
std::span<const OperatorRow> program_operators() { return kProgramRows; }

}  // namespace serin::formats::torch
