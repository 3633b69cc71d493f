// function.cc: an operator is named as its function (kernels/functions.def), except that Gelu is two functions.

#include "runtime/graph/function.h"

namespace serin::graph {

std::optional<UnaryFunction> unary_function_of(const Node& node) {
  const bool by_tanh = node.op == Op::kGelu && node.text("approximate", "none") == "tanh";
  const kernels::NamedUnary* row = kernels::find_unary(by_tanh ? "GeluTanh" : op_name(node.op));
  if (!row || (node.op == Op::kClip && node.inputs.size() > 1) || (node.op == Op::kSwish && node.number("alpha", 1) != 1))
    return std::nullopt;
  const auto given = [&node](const kernels::Parameter& parameter) -> std::optional<double> {
    if (parameter.attribute.empty()) return std::nullopt;
    return node.number(parameter.attribute, parameter.otherwise);
  };
  return UnaryFunction{row, given(row->alpha), given(row->beta)};
}

}  // namespace serin::graph
