// fuse_layer_norm.cc
//
// LayerNormalization over the last axis, as exporters before opset 17 spell it:
//
//   d = x - mean(x)         v = mean(d * d)  or  mean(pow(d, 2))
//   y = d / sqrt(v + eps) * scale + bias
//
// d is sometimes computed twice. Matched from the division backwards and forwards. Keras and TensorFlow multiply out:
//
//   f = scale / sqrt(v + eps)
//   y = x * f + (bias - mean(x) * f)     or  x * f + (-mean(x) * f + bias)
//
// Matched from the last sum backwards.

#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"
#include "runtime/graph/passes/root_mean_square.h"

namespace serin::graph {
namespace {

/// x, where `value` is x - mean(x); kNone otherwise.
ValueId centred(const Graph& graph, ValueId value) {
  const NodeId sub = graph.producer(value);
  if (!graph.is(sub, Op::kSub)) return kNone;
  const NodeId mean = graph.producer(graph.input(sub, 1));
  const ValueId x = graph.input(sub, 0);
  return is_mean_over_last_axis(graph, mean) && graph.input(mean, 0) == x ? x : kNone;
}

bool fuse_division(Graph& graph, NodeId div) {
  const auto deviation = root_mean_square(graph, graph.input(div, 1));
  const ValueId x = centred(graph, graph.input(div, 0));
  if (!deviation || x == kNone || centred(graph, deviation->x) != x) return false;

  const NodeId mul = only_reader(graph, graph.output(div));
  const ValueId scale = parameter_of_last_axis(graph, mul, Op::kMul, graph.output(div));
  if (scale == kNone) return false;
  const NodeId add = only_reader(graph, graph.output(mul));
  const ValueId bias = parameter_of_last_axis(graph, add, Op::kAdd, graph.output(mul));
  const NodeId last = bias == kNone ? mul : add;

  // The rest (mean, difference, square ...) is dead afterwards, unless it is read elsewhere: dead_code decides.
  Patch patch(graph, last == mul ? std::vector<NodeId>{div, mul} : std::vector<NodeId>{div, mul, add});
  patch.replace(graph.output(last),
                patch.add(Op::kLayerNormalization, {x, scale, bias}, {{"axis", int64_t{-1}}, {"epsilon", deviation->epsilon}}));
  return true;
}

/// A constant of [c] or [1, 1, c], as a vector; null otherwise.
ConstantPtr vector_of_last_axis(const Graph& graph, ValueId value, const Dims& dims) {
  const ConstantPtr constant = graph.constant(value);
  if (!constant || constant->shape.is_scalar() || Dim(constant->shape.back()) != dims.back()) return nullptr;
  if (constant->elements() != constant->shape.back()) return nullptr;
  const Shape shape{constant->shape.back()};
  return constant->resident ? make_constant(constant->dtype, shape, constant->resident)
                            : make_constant(constant->dtype, shape, constant->recipe);
}

/// Operands of a node in both orders.
template <class Take>
bool in_both_orders(const Graph& graph, NodeId id, Take&& take) {
  return take(graph.input(id, 0), graph.input(id, 1)) || take(graph.input(id, 1), graph.input(id, 0));
}

/// bias, where `value` is bias - mean(x) * f or -mean(x) * f + bias; kNone otherwise.
ValueId shift_operand(const Graph& graph, ValueId value, ValueId x, ValueId f) {
  const auto is_mean_of_x = [&](ValueId mean) {
    return is_mean_over_last_axis(graph, graph.producer(mean)) && graph.input(graph.producer(mean), 0) == x;
  };
  const auto is_product = [&](ValueId product, bool negated) {
    const NodeId mul = graph.producer(product);
    if (!graph.is(mul, Op::kMul)) return false;
    const ValueId mean = other_operand(graph, mul, f);
    const NodeId neg = graph.producer(mean);
    return negated ? graph.is(neg, Op::kNeg) && is_mean_of_x(graph.input(neg, 0)) : is_mean_of_x(mean);
  };
  const NodeId id = graph.producer(value);
  if (graph.is(id, Op::kSub) && is_product(graph.input(id, 1), false)) return graph.input(id, 0);
  if (!graph.is(id, Op::kAdd)) return kNone;
  if (is_product(graph.input(id, 0), true)) return graph.input(id, 1);
  return is_product(graph.input(id, 1), true) ? graph.input(id, 0) : kNone;
}

/// `product` is x * f, `shift` the rest of the sum.
bool fuse_sum(Graph& graph, NodeId sum, ValueId product, ValueId shift) {
  const NodeId mul = graph.producer(product);
  const Dims* const dims = dims_of_value(graph, product);
  if (!graph.is(mul, Op::kMul) || !dims || dims->empty()) return false;
  return in_both_orders(graph, mul, [&](ValueId x, ValueId f) {
    const NodeId factor = graph.producer(f);
    if (!graph.is(factor, Op::kMul)) return false;
    return in_both_orders(graph, factor, [&](ValueId inverse, ValueId scale) {
      const NodeId reciprocal = graph.producer(inverse);
      if (!graph.is(reciprocal, Op::kReciprocal)) return false;
      const auto deviation = root_mean_square(graph, graph.input(reciprocal, 0));
      if (!deviation || centred(graph, deviation->x) != x) return false;
      const ValueId bias = shift_operand(graph, shift, x, f);
      const ConstantPtr scales = vector_of_last_axis(graph, scale, *dims), biases = vector_of_last_axis(graph, bias, *dims);
      if (!scales || !biases) return false;
      Patch patch(graph, {mul, sum});
      const ValueId gamma = patch.constant(scale, scales), beta = patch.constant(bias, biases);
      patch.replace(graph.output(sum),
                    patch.add(Op::kLayerNormalization, {x, gamma, beta}, {{"axis", int64_t{-1}}, {"epsilon", deviation->epsilon}}));
      return true;
    });
  });
}

}  // namespace

Result<bool> FuseLayerNorm::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId sum : graph.nodes(Op::kAdd))
    changed |= in_both_orders(graph, sum, [&](ValueId product, ValueId shift) { return fuse_sum(graph, sum, product, shift); });
  for (const NodeId div : graph.nodes(Op::kDiv)) changed |= fuse_division(graph, div);
  if (changed) SERIN_CHECK(DeadCode().run(graph));
  return changed;
}

}  // namespace serin::graph
