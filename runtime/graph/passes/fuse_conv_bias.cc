// fuse_conv_bias.cc
//
// A Conv or ConvTranspose without a bias, whose only reader adds a constant with one number for each channel, is one with that bias:
//
//   Add(Conv(x, w), b[1,c,1,1]) = Conv(x, w, b[c])
//
// Paddle and frameworks with channels last have no bias in their convolutions.

#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {
namespace {

/// The constant as [channels], if its only axis of more than one element is that of the channels.
ConstantPtr as_bias(const ConstantPtr& added, size_t rank, int64_t channels) {
  if (!added || added->dtype != DType::kFloat32 || added->elements() != channels || added->shape.rank() > rank) return nullptr;
  const size_t missing = rank - added->shape.rank();  // axes in front, to which it broadcasts
  if (missing > 1 || added->shape[1 - missing] != channels) return nullptr;
  return make_constant(DType::kFloat32, Shape{channels}, in_memory(added)->data());
}

int64_t channels_of(const Graph& graph, NodeId conv, const Dims& weight) {
  const bool transposed = graph.is(conv, Op::kConvTranspose);  // [c, filters of a group, ...]
  const auto filters = weight[transposed ? 1 : 0].value();
  return filters ? *filters * (transposed ? graph.node(conv).integer("group", 1) : 1) : 0;
}

}  // namespace

Result<bool> FuseConvBias::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId add : graph.nodes(Op::kAdd)) {
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const ValueId product = graph.input(add, side), added = graph.input(add, 1 - side);
      NodeId conv = only_producer(graph, product, Op::kConv);
      if (conv == kNone) conv = only_producer(graph, product, Op::kConvTranspose);
      if (conv == kNone || graph.input(conv, 2) != kNone) continue;
      const Dims* const weight = dims_of_value(graph, graph.input(conv, 1));
      if (!weight || weight->size() < 3) continue;
      const ConstantPtr bias = as_bias(graph.constant(added), weight->size(), channels_of(graph, conv, *weight));
      if (!bias) continue;
      Patch patch(graph, {conv, add});
      const ValueId folded = patch.constant(added, bias);
      patch.replace(graph.output(add),
                    patch.add(graph.node(conv).op, {graph.input(conv, 0), graph.input(conv, 1), folded}, graph.node(conv).attributes));
      changed = true;
      break;
    }
  }
  return changed;
}

}  // namespace serin::graph
