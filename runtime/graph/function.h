// function.h: the function of one element that a node applies, as kernels know it.
#pragma once

#include <optional>

#include "kernels/function_names.h"
#include "runtime/graph/graph.h"

namespace serin::graph {

/// y = fn(x, alpha, beta), with x the first operand. A parameter that the function does not have is absent.
struct UnaryFunction {
  const kernels::NamedUnary* row;
  std::optional<double> alpha, beta;
};

/// Nothing where the node is none: another operator, a Clip with computed bounds, a scaled Swish.
std::optional<UnaryFunction> unary_function_of(const Node& node);

}  // namespace serin::graph
