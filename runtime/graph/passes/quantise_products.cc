// quantise_products.cc
//
//   DequantizeLinear(x), DequantizeLinear(w) -> Conv -> [Relu] -> QuantizeLinear        ->   QLinearConv
//   DequantizeLinear(a), DequantizeLinear(b) -> MatMul, Gemm -> [Relu, QuantizeLinear]  ->   QuantizedMatMul
//   QLinearMatMul with a known matrix                                                   ->   QuantizedMatMul
//
// Weights with zero points of their own are first moved around zero. That is exact, and a weight quantised to seven bits always fits.
//
//   DequantizeLinear, QLinearConv, QLinearMatMul (w: u8, zero point)   ->   the same with w: i8 and no zero point
//
// The first rewrite is turned round where a convolution's weight does not fit (it takes two products of bytes for one, and f32 has Winograd's way) or
// has three spatial axes, for which no kernel on bytes is fast.
//
//   QLinearConv(x, w)   ->   DequantizeLinear(x), DequantizeLinear(w) -> Conv -> QuantizeLinear
//
// Sums of products of bytes are exact in 32 bits, so this differs from the graph as it was written only by what f32 rounds there. A bias becomes part of
// the sum: whole multiples of the product's scale, as quantisers write it anyway.

#include <utility>

#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"
#include "runtime/graph/passes/quantised.h"

namespace serin::graph {
namespace {

/// Over one or two spatial axes, as the kernels on bytes are; over three a convolution is faster in f32.
bool has_kernels_on_bytes(const Constant& weight) { return weight.shape.rank() == 3 || weight.shape.rank() == 4; }

/// Operand i of the node is a weight, and i + 2 its zero points.
bool move_around_zero(Graph& graph, NodeId node, size_t i, int64_t axis) {
  const ConstantPtr weight = graph.constant(graph.input(node, i)), zero = graph.constant(graph.input(node, i + 2));
  if (!weight || !zero || !is_byte(weight->dtype) || is_symmetric(*weight, zero)) return false;
  if (axis < 0) axis += static_cast<int64_t>(weight->shape.rank());
  ConstantPtr moved = around_zero(weight, zero, static_cast<size_t>(axis));
  if (!moved) return false;
  const std::string name = graph.value(graph.input(node, i)).name + "'";
  graph.set_input(node, i, graph.add_constant(name, std::move(moved)));
  std::byte* zeros = nullptr;  // as many as before: a scale for each channel demands a zero point for each
  graph.set_input(node, i + 2, graph.add_constant(name + ".zero", make_mutable_constant(DType::kInt8, zero->shape, &zeros)));
  return true;
}

bool quantise_conv(Graph& graph, NodeId conv) {
  const auto x = dequantised(graph, graph.input(conv, 0));
  const auto w = dequantised_weight(graph, graph.input(conv, 1), 0);
  const auto y = quantised_result(graph, graph.output(conv));
  if (!x || !w || !y) return false;
  const Constant& weight = *graph.constant(w->q);
  if (!is_symmetric(weight, graph.constant(w->zero))) return false;
  const Constant& w_scale = *graph.constant(w->scale);
  if (!has_kernels_on_bytes(weight) || (w_scale.elements() != 1 && w_scale.elements() != weight.shape[0])) return false;
  const auto bias = quantised_bias(graph, graph.input(conv, 2), scale_of(graph, *x), w_scale, weight.shape[0]);
  if (!bias) return false;

  std::vector<NodeId> replaced{conv};
  replaced.insert(replaced.end(), y->nodes.begin(), y->nodes.end());
  Patch patch(graph, replaced);
  Attributes attributes = graph.node(conv).attributes;
  if (!y->activation.empty()) attributes["activation"] = y->activation;
  const ValueId b = bias->present ? patch.constant(kNone, bias->constant) : kNone;
  const ValueId x_zero = zero_point(graph, *x), w_zero = zero_point(graph, *w), y_zero = zero_point(graph, y->to);
  const ValueId result =
      patch.add(Op::kQLinearConv, {x->q, x->scale, x_zero, w->q, w->scale, w_zero, y->to.scale, y_zero, b}, std::move(attributes));
  patch.replace(y->made(), result);
  return true;
}

bool return_to_floats(Graph& graph, NodeId conv) {
  const Node& node = graph.node(conv);
  const ConstantPtr weight = graph.constant(graph.input(conv, 3)), zero = graph.constant(graph.input(conv, 5));
  const ConstantPtr x_scale = graph.constant(graph.input(conv, 1)), w_scale = graph.constant(graph.input(conv, 4));
  if (node.inputs.size() > 9 || node.integer("channels_last", 0) != 0 || !weight || !zero ||
      (has_kernels_on_bytes(*weight) && is_symmetric(*weight, zero)))
    return false;
  if (!x_scale || !w_scale || x_scale->dtype != DType::kFloat32 || w_scale->dtype != DType::kFloat32 || x_scale->elements() != 1)
    return false;
  const ConstantPtr bias = graph.constant(graph.input(conv, 8));
  if (graph.input(conv, 8) != kNone && (!bias || bias->dtype != DType::kInt32)) return false;

  const std::vector<ValueId> in = node.inputs;
  Attributes attributes = node.attributes;
  Patch patch(graph, {conv});
  const ValueId x = patch.add(Op::kDequantizeLinear, {in[0], in[1], in[2]}, {{"axis", int64_t{1}}});
  const ValueId w = patch.add(Op::kDequantizeLinear, {in[3], in[4], in[5]}, {{"axis", int64_t{0}}});
  ValueId b = kNone;
  if (bias) {
    std::byte* memory = nullptr;
    auto real = make_mutable_constant(DType::kFloat32, bias->shape, &memory);
    const auto scales = w_scale->span<float>();
    for (size_t i = 0; i < bias->span<int32_t>().size(); ++i) {
      const float unit = x_scale->span<float>()[0] * scales[i < scales.size() ? i : 0];
      reinterpret_cast<float*>(memory)[i] = static_cast<float>(bias->span<int32_t>()[i]) * unit;
    }
    b = patch.constant(in[8], std::move(real));
  }
  const ValueId y = patch.add(Op::kConv, {x, w, b}, std::move(attributes));
  patch.replace(graph.output(conv), patch.add(Op::kQuantizeLinear, {y, in[6], in[7]}, {{"axis", int64_t{1}}}));
  return true;
}

ConstantPtr transposed(const ConstantPtr& matrix) {
  const auto rows = static_cast<size_t>(matrix->shape[0]), columns = static_cast<size_t>(matrix->shape[1]);
  return make_constant(matrix->dtype, Shape{matrix->shape[1], matrix->shape[0]}, [=](std::span<std::byte> to) -> Status {
    const auto from = matrix->span<std::byte>();
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
    return {};
  });
}

bool quantise_matmul(Graph& graph, NodeId product) {
  const Node& node = graph.node(product);
  const bool gemm = node.op == Op::kGemm, trans_b = node.integer("transB", 0) != 0;
  const bool scaled = node.number("alpha", 1) != 1 || (graph.input(product, 2) != kNone && node.number("beta", 1) != 1);
  if (gemm && (scaled || node.integer("transA", 0) != 0)) return false;
  const auto a = dequantised(graph, graph.input(product, 0));
  const auto b = dequantised_weight(graph, graph.input(product, 1), trans_b ? 0 : 1);
  if (!a || !b) return false;
  const ConstantPtr weight = graph.constant(b->q);
  const Constant& b_scale = *graph.constant(b->scale);
  if (weight->shape.rank() != 2 || weight->elements() == 0) return false;
  const int64_t columns = weight->shape[trans_b ? 0 : 1];
  if (b_scale.elements() != 1 && b_scale.elements() != columns) return false;
  const auto bias = quantised_bias(graph, gemm ? graph.input(product, 2) : kNone, scale_of(graph, *a), b_scale, columns);
  if (!bias) return false;

  const auto y = quantised_result(graph, graph.output(product));  // else the result stays f32
  std::vector<NodeId> replaced{product};
  if (y) replaced.insert(replaced.end(), y->nodes.begin(), y->nodes.end());
  Patch patch(graph, replaced);
  const ValueId q = trans_b ? patch.constant(b->q, transposed(weight)) : b->q;
  const ValueId c = bias->present ? patch.constant(kNone, bias->constant) : kNone;
  const ValueId a_zero = zero_point(graph, *a), b_zero = zero_point(graph, *b);
  std::vector<ValueId> operands{a->q, a->scale, a_zero, q, b->scale, b_zero, c};
  Attributes attributes;
  if (y) {
    operands.push_back(y->to.scale);
    operands.push_back(zero_point(graph, y->to));
    if (!y->activation.empty()) attributes["activation"] = y->activation;
  }
  const ValueId before = y ? y->made() : graph.output(product);
  patch.replace(before, patch.add(Op::kQuantizedMatMul, std::move(operands), std::move(attributes)));
  return true;
}

/// The same operator without a place for a bias.
bool as_quantised_matmul(Graph& graph, NodeId product) {
  const std::vector<ValueId> in = graph.node(product).inputs;
  const ConstantPtr weight = graph.constant(in[3]);
  if (!weight || weight->shape.rank() != 2 || weight->elements() == 0) return false;
  const auto holds = [&](size_t i, DType dtype, int64_t most) {
    const ConstantPtr constant = graph.constant(in[i]);
    return constant && (dtype == DType::kUndefined || constant->dtype == dtype) &&
           (constant->elements() == 1 || constant->elements() == most);
  };
  const auto has_parameters = [&](size_t scale, int64_t most) {
    return holds(scale, DType::kFloat32, most) && holds(scale + 1, DType::kUndefined, most);
  };
  if (!has_parameters(1, 1) || !has_parameters(4, weight->shape[1]) || !has_parameters(6, 1)) return false;
  Patch patch(graph, {product});
  patch.replace(graph.output(product),
                patch.add(Op::kQuantizedMatMul, {in[0], in[1], in[2], in[3], in[4], in[5], kNone, in[6], in[7]}, {}));
  return true;
}

}  // namespace

Result<bool> QuantiseProducts::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId node : graph.nodes(Op::kDequantizeLinear)) {
    if (graph.node(node).integer("block_size", 0) == 0) changed |= move_around_zero(graph, node, 0, graph.node(node).integer("axis", 1));
  }
  for (const NodeId node : graph.nodes(Op::kQLinearConv)) changed |= move_around_zero(graph, node, 3, 0);
  for (const NodeId node : graph.nodes(Op::kQLinearMatMul)) changed |= move_around_zero(graph, node, 3, -1);
  for (const NodeId conv : graph.nodes(Op::kConv)) changed |= quantise_conv(graph, conv);
  for (const NodeId conv : graph.nodes(Op::kQLinearConv)) changed |= return_to_floats(graph, conv);
  for (const NodeId product : graph.nodes(Op::kQLinearMatMul)) changed |= as_quantised_matmul(graph, product);
  for (const Op op : {Op::kMatMul, Op::kGemm}) {
    for (const NodeId product : graph.nodes(op)) changed |= quantise_matmul(graph, product);
  }
  return changed;
}

}  // namespace serin::graph
