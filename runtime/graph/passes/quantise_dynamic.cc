// quantise_dynamic.cc
//
//   q, s, z = DynamicQuantizeLinear(x);  MatMulInteger(q, w, z, wz) -> Cast -> Mul(s * ws) -> [Add bias]   ->   DynamicQuantizeMatMul(x, w, ws, wz, bias)
//
// what quantisers without calibration write for every product of a transformer. The scales' product may stand as Mul(s, ws), or one after the other.
//
//   q, s, z = DynamicQuantizeLinear(x);  ConvInteger(q, w, z, wz) -> Cast -> Mul(s * ws)   ->   Conv(DequantizeLinear(q, s, z), w as f32)
//
// because no convolution on bytes finds its ranges when it runs: in f32, of the same rounded numbers, it has its fast kernels.

#include <algorithm>
#include <optional>

#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"
#include "runtime/graph/passes/quantised.h"

namespace serin::graph {
namespace {

bool is_f32_constant(const Graph& graph, ValueId value, int64_t elements) {
  const ConstantPtr constant = graph.constant(value);
  return constant && constant->dtype == DType::kFloat32 && (constant->elements() == 1 || constant->elements() == elements);
}

/// The constant scale w of `scale` = Mul(s, w), kNone where it is none.
ValueId weight_scale(const Graph& graph, ValueId scale, ValueId x_scale, int64_t columns) {
  const NodeId mul = graph.producer(scale);
  if (!graph.is(mul, Op::kMul)) return kNone;
  const ValueId other = other_operand(graph, mul, x_scale);
  return other != kNone && is_f32_constant(graph, other, columns) ? other : kNone;
}

/// A product of what a DynamicQuantizeLinear makes and a known weight, and what makes floats of its sums.
struct DynamicProduct {
  NodeId quantise = kNone, cast = kNone, mul = kNone;
  ConstantPtr weight;
  ValueId w_zero = kNone, w_scale = kNone;
};

/// `columns`: the axis of the weight that may have a scale for each index.
std::optional<DynamicProduct> dynamic_product(const Graph& graph, NodeId product, size_t rank, size_t columns) {
  DynamicProduct found;
  found.quantise = graph.producer(graph.input(product, 0));
  found.weight = graph.constant(graph.input(product, 1));
  if (!graph.is(found.quantise, Op::kDynamicQuantizeLinear) || !found.weight || found.weight->shape.rank() < rank) return std::nullopt;
  if (graph.input(product, 0) != graph.output(found.quantise, 0) || graph.input(product, 2) != graph.output(found.quantise, 2))
    return std::nullopt;
  found.w_zero = graph.input(product, 3);
  if (found.w_zero != kNone && !graph.constant(found.w_zero)) return std::nullopt;

  found.cast = only_reader(graph, graph.output(product));
  if (!graph.is(found.cast, Op::kCast) || graph.node(found.cast).text("to", "") != "f32") return std::nullopt;
  found.mul = only_reader(graph, graph.output(found.cast));
  if (!graph.is(found.mul, Op::kMul)) return std::nullopt;
  const ValueId scale = other_operand(graph, found.mul, graph.output(found.cast));
  found.w_scale = weight_scale(graph, scale, graph.output(found.quantise, 1), found.weight->shape[columns]);
  if (found.w_scale == kNone || !same_type(graph, graph.output(found.cast), graph.output(found.mul))) return std::nullopt;
  return found;
}

bool fuse_product(Graph& graph, NodeId product) {
  const auto found = dynamic_product(graph, product, 2, 1);
  if (!found || found->weight->shape.rank() != 2) return false;
  const int64_t columns = found->weight->shape[1];
  const ValueId made = graph.output(found->mul);
  const NodeId add = only_reader(graph, made);
  ValueId bias = graph.is(add, Op::kAdd) ? other_operand(graph, add, made) : kNone;
  if (bias != kNone && (!is_row(graph, bias, columns) || !same_type(graph, made, graph.output(add)))) bias = kNone;

  const ValueId x = graph.input(found->quantise, 0), weight = graph.input(product, 1);
  std::vector<NodeId> replaced{product, found->cast, found->mul};
  if (bias != kNone) replaced.push_back(add);
  Patch patch(graph, replaced);
  patch.replace(bias != kNone ? graph.output(add) : made,
                patch.add(Op::kDynamicQuantizeMatMul, {x, weight, found->w_scale, found->w_zero, bias}, {}));
  return true;
}

ConstantPtr in_floats(const ConstantPtr& bytes, float scale, int64_t zero) {
  return make_constant(DType::kFloat32, bytes->shape, [=](std::span<std::byte> to) -> Status {
    const auto from = bytes->span<uint8_t>();
    const bool is_signed = bytes->dtype == DType::kInt8;
    std::ranges::transform(from, reinterpret_cast<float*>(to.data()),
                           [&](uint8_t byte) { return static_cast<float>((is_signed ? static_cast<int8_t>(byte) : byte) - zero) * scale; });
    return {};
  });
}

bool convolve_floats(Graph& graph, NodeId conv) {
  const auto found = dynamic_product(graph, conv, 3, 0);
  if (!found || !is_byte(found->weight->dtype)) return false;
  const ConstantPtr scale = graph.constant(found->w_scale), zero = graph.constant(found->w_zero);
  const auto zeros = zero ? integers_of(*zero) : std::vector<int64_t>{0};
  if (scale->elements() != 1 || !zeros || zeros->size() != 1) return false;

  const std::vector<ValueId> q = graph.node(found->quantise).outputs;
  Attributes attributes = graph.node(conv).attributes;
  const ValueId bytes = graph.input(conv, 1);
  Patch patch(graph, {conv, found->cast, found->mul});
  const ValueId x = patch.add(Op::kDequantizeLinear, {q[0], q[1], q[2]}, {{"axis", int64_t{1}}});
  const ValueId weight = patch.constant(bytes, in_floats(found->weight, scale->span<float>()[0], zeros->front()));
  patch.replace(graph.output(found->mul), patch.add(Op::kConv, {x, weight}, std::move(attributes)));
  return true;
}

}  // namespace

Result<bool> QuantiseDynamic::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId product : graph.nodes(Op::kMatMulInteger)) changed |= fuse_product(graph, product);
  for (const NodeId conv : graph.nodes(Op::kConvInteger)) changed |= convolve_floats(graph, conv);
  return changed;
}

}  // namespace serin::graph
