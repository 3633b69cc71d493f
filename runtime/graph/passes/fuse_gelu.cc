// fuse_gelu.cc
//
// Exporters that know no Gelu write
//
//   y = x * 0.5 * (1 + erf(x / sqrt(2)))
//
// with the factors in any order, so the factors are collected: from 1 + erf(...) on along the products, until x and 0.5 were both met.

#include <numbers>

#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {
namespace {

/// x, where `value` is x / sqrt(2); kNone otherwise.
ValueId scaled_operand(const Graph& graph, ValueId value) {
  const NodeId id = graph.producer(value);
  if (graph.is(id, Op::kDiv) && is_number(graph, graph.input(id, 1), std::numbers::sqrt2)) return graph.input(id, 0);
  if (!graph.is(id, Op::kMul)) return kNone;
  for (const size_t i : {0, 1}) {
    if (is_number(graph, graph.input(id, i), 1 / std::numbers::sqrt2)) return graph.input(id, 1 - i);
  }
  return kNone;
}

struct Product {
  std::vector<NodeId> nodes;
  ValueId result = kNone;
};

/// The products from `value` on that multiply it by x and by 0.5, each once, in any order; a result of kNone where they do not.
Product collect_factors(const Graph& graph, ValueId value, ValueId x) {
  Product product;
  bool met_x = false, met_half = false;
  while (!met_x || !met_half) {
    const NodeId mul = only_reader(graph, value);
    if (!graph.is(mul, Op::kMul)) return {};
    const ValueId factor = other_operand(graph, mul, value);
    const NodeId half_x = graph.is(graph.producer(factor), Op::kMul) && factor != x ? graph.producer(factor) : kNone;  // x * 0.5 on its own
    if (factor == x && !met_x) {
      met_x = true;
    } else if (is_number(graph, factor, 0.5) && !met_half) {
      met_half = true;
    } else if (half_x != kNone && !met_x && !met_half && other_operand(graph, half_x, x) != kNone &&
               is_number(graph, other_operand(graph, half_x, x), 0.5)) {
      product.nodes.push_back(half_x);
      met_x = met_half = true;
    } else {
      return {};
    }
    product.nodes.push_back(mul);
    value = graph.output(mul);
  }
  product.result = value;
  return product;
}

}  // namespace

Result<bool> FuseGelu::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId erf : graph.nodes(Op::kErf)) {
    const ValueId x = scaled_operand(graph, graph.input(erf, 0));
    const NodeId plus = only_reader(graph, graph.output(erf));
    if (x == kNone || !graph.is(plus, Op::kAdd) || !is_number(graph, other_operand(graph, plus, graph.output(erf)), 1)) continue;
    const Product product = collect_factors(graph, graph.output(plus), x);
    if (product.result == kNone || !same_type(graph, x, product.result)) continue;

    std::vector<NodeId> nodes{graph.producer(graph.input(erf, 0)), erf, plus};
    nodes.insert(nodes.end(), product.nodes.begin(), product.nodes.end());
    Patch patch(graph, std::move(nodes));
    patch.replace(product.result, patch.add(Op::kGelu, {x}, {}));
    changed = true;
  }
  return changed;
}

}  // namespace serin::graph
