// quantise_chains.cc: joins a QLinearConv with the operators after it, which then run before its result is stored.
//
//   QLinearConv -> QuantizedBinary(Add, residual)                    ->   QLinearConv with the residual
//   QLinearConv -> DequantizeLinear -> [Relu] -> QuantizeLinear      ->   QLinearConv, quantised once more
//
// Every rounding that the graph asks for is still made, one after the other, so the bytes are the same; only the passes over memory are gone. Quantisers
// that keep zero points at 0 write the second form: a Relu is then no matter of the range of the bytes.

#include <utility>

#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"
#include "runtime/graph/passes/quantised.h"

namespace serin::graph {
namespace {

constexpr size_t kResidual = 9, kSumScale = 12;

/// A filter for each channel: no kernel adds behind it.
bool is_depthwise(const Graph& graph, NodeId conv) {
  const Dims* weight = dims_of_value(graph, graph.input(conv, 3));
  return weight && weight->size() > 1 && (*weight)[1] == Dim(1) && graph.node(conv).integer("group", 1) > 1;
}

bool fuse_sum(Graph& graph, NodeId sum) {
  if (graph.node(sum).text("function", "") != "Add") return false;
  for (const size_t own : {0, 3}) {
    const size_t other = 3 - own;
    const NodeId conv = only_producer(graph, graph.input(sum, own), Op::kQLinearConv);
    const ValueId residual = graph.input(sum, other);
    if (conv == kNone || graph.input(conv, kSumScale) != kNone || residual == graph.output(conv) || is_depthwise(graph, conv)) continue;
    const Dims *x = dims_of_value(graph, residual), *y = dims_of_value(graph, graph.output(conv));
    if (!x || !y || !(*x == *y)) continue;
    Patch patch(graph, {conv, sum});
    std::vector<ValueId> operands = graph.node(conv).inputs;
    operands.resize(kResidual, kNone);
    for (const size_t i : {other, other + 1, other + 2, size_t{6}, size_t{7}}) operands.push_back(graph.input(sum, i));
    Attributes attributes = graph.node(conv).attributes;
    if (!graph.node(sum).text("activation", "").empty()) attributes["sum_activation"] = graph.node(sum).text("activation", "");
    patch.replace(graph.output(sum), patch.add(Op::kQLinearConv, std::move(operands), std::move(attributes)));
    return true;
  }
  return false;
}

/// The bytes of a convolution that nothing but one DequantizeLinear reads, and what becomes of them.
bool fuse_again(Graph& graph, NodeId dequantise) {
  const auto x = dequantised(graph, graph.output(dequantise));
  if (!x) return false;
  const NodeId conv = only_producer(graph, x->q, Op::kQLinearConv);
  if (conv != kNone && is_depthwise(graph, conv)) return false;
  const auto y = quantised_result(graph, graph.output(dequantise));
  if (conv == kNone || !y || graph.node(conv).attributes.contains("again_scale")) return false;
  if (graph.value(y->to.q).type.dtype != graph.value(x->q).type.dtype) return false;
  std::vector<NodeId> replaced{conv, dequantise};
  replaced.insert(replaced.end(), y->nodes.begin(), y->nodes.end());
  Patch patch(graph, replaced);
  std::vector<ValueId> operands = graph.node(conv).inputs;
  Attributes attributes = graph.node(conv).attributes;
  if (graph.input(conv, kSumScale) == kNone) {
    operands.resize(kSumScale, kNone);
    operands.push_back(y->to.scale);
    operands.push_back(zero_point(graph, y->to));
    if (!y->activation.empty()) attributes["sum_activation"] = y->activation;
  } else {
    attributes["again_scale"] = static_cast<double>(scale_of(graph, y->to));
    attributes["again_zero"] = int64_t{zero_of(graph, y->to)};
    if (!y->activation.empty()) attributes["again_activation"] = y->activation;
  }
  patch.replace(y->made(), patch.add(Op::kQLinearConv, std::move(operands), std::move(attributes)));
  return true;
}

}  // namespace

Result<bool> QuantiseChains::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId sum : graph.nodes(Op::kQuantizedBinary)) changed |= fuse_sum(graph, sum);
  for (const NodeId dequantise : graph.nodes(Op::kDequantizeLinear))
    changed |= !graph.node(dequantise).removed && fuse_again(graph, dequantise);
  return changed;
}

}  // namespace serin::graph
