// fuse_gelu.cc
//
// Exporters that know no Gelu write
//
//   y = x * 0.5 * (1 + erf(x / sqrt(2)))
//   y = x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
//
// with the factors in any order, so the factors are collected: from 1 + erf(...) on along the products, until x and 0.5 were both met. The cube is
// Pow(x, 3) or x * x * x.

#include <algorithm>
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

/// The operand of a product that is not the number `expected`; kNone where there is no such number.
ValueId times(const Graph& graph, ValueId value, double expected, std::vector<NodeId>& nodes) {
  const NodeId id = graph.producer(value);
  if (!graph.is(id, Op::kMul)) return kNone;
  for (const size_t i : {0, 1}) {
    if (!is_number(graph, graph.input(id, i), expected, 1e-3)) continue;
    nodes.push_back(id);
    return graph.input(id, 1 - i);
  }
  return kNone;
}

/// x, where `value` is its cube.
ValueId cubed_operand(const Graph& graph, ValueId value, std::vector<NodeId>& nodes) {
  const NodeId id = graph.producer(value);
  if (graph.is(id, Op::kPow) && is_number(graph, graph.input(id, 1), 3)) {
    nodes.push_back(id);
    return graph.input(id, 0);
  }
  if (!graph.is(id, Op::kMul)) return kNone;
  for (const size_t i : {0, 1}) {
    const ValueId x = graph.input(id, i);
    const NodeId square = graph.producer(graph.input(id, 1 - i));
    if (!graph.is(square, Op::kMul) || graph.input(square, 0) != x || graph.input(square, 1) != x) continue;
    nodes.push_back(square);
    nodes.push_back(id);
    return x;
  }
  return kNone;
}

/// x, where `value` is sqrt(2 / pi) * (x + 0.044715 * x^3).
ValueId tanh_operand(const Graph& graph, ValueId value, std::vector<NodeId>& nodes) {
  const NodeId sum = graph.producer(times(graph, value, 0.7978845608, nodes));
  if (!graph.is(sum, Op::kAdd)) return kNone;
  nodes.push_back(sum);
  for (const size_t i : {0, 1}) {
    std::vector<NodeId> inner;
    const ValueId cube = times(graph, graph.input(sum, 1 - i), 0.044715, inner);
    if (cube == kNone || cubed_operand(graph, cube, inner) != graph.input(sum, i)) continue;
    nodes.insert(nodes.end(), inner.begin(), inner.end());
    return graph.input(sum, i);
  }
  return kNone;
}

/// `function` is erf or tanh of what `nodes` make of x.
bool fuse(Graph& graph, NodeId function, ValueId x, std::vector<NodeId> nodes, Attributes attributes) {
  const NodeId plus = only_reader(graph, graph.output(function));
  if (x == kNone || !graph.is(plus, Op::kAdd) || !is_number(graph, other_operand(graph, plus, graph.output(function)), 1)) return false;
  const Product product = collect_factors(graph, graph.output(plus), x);
  if (product.result == kNone || !same_type(graph, x, product.result)) return false;
  nodes.insert(nodes.end(), {function, plus});
  nodes.insert(nodes.end(), product.nodes.begin(), product.nodes.end());
  std::ranges::sort(nodes);
  Patch patch(graph, std::move(nodes));
  patch.replace(product.result, patch.add(Op::kGelu, {x}, std::move(attributes)));
  return true;
}

}  // namespace

Result<bool> FuseGelu::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId tanh : graph.nodes(Op::kTanh)) {
    std::vector<NodeId> nodes;
    const ValueId x = tanh_operand(graph, graph.input(tanh, 0), nodes);
    changed |= fuse(graph, tanh, x, std::move(nodes), {{"approximate", std::string("tanh")}});
  }
  for (const NodeId erf : graph.nodes(Op::kErf)) {
    const ValueId x = scaled_operand(graph, graph.input(erf, 0));
    changed |= fuse(graph, erf, x, {graph.producer(graph.input(erf, 0))}, {});
  }
  if (changed) SERIN_CHECK(DeadCode().run(graph));
  return changed;
}

}  // namespace serin::graph
