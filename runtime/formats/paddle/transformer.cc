// transformer.cc: the fused operators of transformers, written out in the steps that the passes over a Graph know: `fuse_attention`,
// `fuse_layer_norm` and others make of them what this engine has.

#include <cmath>
#include <limits>

#include "runtime/formats/paddle/operators.h"

namespace serin::formats::paddle {
namespace {

ValueId layer_norm(Node& node, ValueId x, ValueId scale, ValueId bias, double epsilon) {
  if (scale == kNone) {
    node.refuse("a fused normalisation without a scale");
    return x;
  }
  return node.b.add(Op::kLayerNormalization, {x, scale, bias}, {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
}

ValueId plus(Node& node, ValueId x, ValueId y) { return y == kNone ? x : node.binary(Op::kAdd, x, y); }

/// softmax(scale q k' + mask) v; operands of [batch, heads, length, head].
ValueId attention(Node& node, ValueId q, ValueId k, ValueId v, ValueId mask, double scale) {
  ValueId scores = node.binary(Op::kMatMul, q, node.b.transpose(k, {0, 1, 3, 2}));
  if (scale != 1) scores = node.with_number(Op::kMul, scores, scale);
  const ValueId weights = node.unary(Op::kSoftmax, plus(node, scores, mask), {{"axis", int64_t{-1}}});
  return node.binary(Op::kMatMul, weights, v);
}

/// [batch, length, heads * head] -> [batch, heads, length, head]
ValueId split_heads(Node& node, ValueId x, int64_t heads, int64_t head) {
  return node.b.transpose(node.b.reshape(x, {0, 0, heads, head}), {0, 2, 1, 3});
}

ValueId join_heads(Node& node, ValueId x, int64_t width) { return node.b.reshape(node.b.transpose(x, {0, 2, 1, 3}), {0, 0, width}); }

/// Self-attention where the three weights are one: [width, 3 heads head].
ValueId self_attention(Node& node, ValueId x, ValueId weight, ValueId bias, ValueId mask, int64_t heads, int64_t head, double scale) {
  ValueId all = node.binary(Op::kMatMul, x, weight);
  if (bias != kNone) all = node.binary(Op::kAdd, all, node.b.reshape(bias, {-1}));
  const auto parts = node.b.add_with_results(Op::kSplit, 3, {all}, {{"axis", int64_t{-1}}, {"split", List(3, heads * head)}});
  const ValueId y = attention(node, split_heads(node, parts[0], heads, head), split_heads(node, parts[1], heads, head),
                              split_heads(node, parts[2], heads, head), mask, scale);
  return join_heads(node, y, heads * head);
}

void import_multihead_matmul(Node& node, Op /*op*/) {
  const ValueId x = node.in("Input"), weight = node.in("W");
  const int64_t heads = node.integer("head_number", 1);
  const auto width = node.b.size(weight, 0);
  if (!width || heads < 1 || *width % heads != 0) return node.corrupt("heads that its weight does not have");
  const ValueId flat = node.b.rank(weight) == size_t{2} ? weight : node.b.reshape(weight, {*width, -1});
  node.out("Out", self_attention(node, x, flat, node.maybe("Bias"), node.maybe("BiasQK"), heads, *width / heads, node.number("alpha", 1)));
}

void import_fused_attention(Node& node, Op /*op*/) {
  const ValueId input = node.in("X"), weight = node.in("QKVW");
  if (!node.all("CacheKV").empty()) return node.refuse("fused_attention with a cache");
  const bool before = node.flag("pre_layer_norm"), flat = node.flag("transpose_qkv_wb");
  const int64_t heads = flat ? node.integer("num_heads", 0) : node.b.size(weight, 1).value_or(0);
  const int64_t head = flat ? (heads > 0 ? node.b.size(weight, 0).value_or(0) / heads : 0) : node.b.size(weight, 2).value_or(0);
  const int64_t width = heads * head;
  if (width <= 0) return node.corrupt("heads that its weight does not have");
  const ValueId x = before ? layer_norm(node, input, node.maybe("LnScale"), node.maybe("LnBias"), node.number("epsilon", 1e-5)) : input;
  const ValueId columns = flat ? weight : node.b.transpose(node.b.reshape(weight, {3 * width, -1}), {1, 0});
  ValueId y =
      self_attention(node, x, columns, node.maybe("QKVBias"), node.maybe("SrcMask"), heads, head, 1 / std::sqrt(static_cast<double>(head)));
  y = plus(node, node.binary(Op::kMatMul, y, node.in("OutLinearW")), node.maybe("OutLinearBias"));
  if (node.flag("add_residual", true)) y = node.binary(Op::kAdd, input, y);
  if (!before) y = layer_norm(node, y, node.maybe("Ln2Scale"), node.maybe("Ln2Bias"), node.number("ln_epsilon", 1e-5));
  node.out("Y", y);
}

void import_fused_feedforward(Node& node, Op /*op*/) {
  const ValueId input = node.in("X");
  const bool before = node.flag("pre_layer_norm");
  const ValueId x =
      before ? layer_norm(node, input, node.maybe("Ln1Scale"), node.maybe("Ln1Bias"), node.number("ln1_epsilon", 1e-5)) : input;
  ValueId y = plus(node, node.binary(Op::kMatMul, x, node.in("Linear1Weight")), node.maybe("Linear1Bias"));
  y = activate(node, node.text("act_method", "gelu"), y);
  y = plus(node, node.binary(Op::kMatMul, y, node.in("Linear2Weight")), node.maybe("Linear2Bias"));
  if (node.flag("add_residual", true)) y = node.binary(Op::kAdd, input, y);
  if (!before) y = layer_norm(node, y, node.maybe("Ln2Scale"), node.maybe("Ln2Bias"), node.number("ln2_epsilon", 1e-5));
  node.out("Out", y);
}

void import_skip_layer_norm(Node& node, Op op) {
  const ValueId sum = node.binary(op, node.in("X"), node.in("Y"));
  node.out("Out", layer_norm(node, sum, node.in("Scale"), node.maybe("Bias"), node.number("epsilon", 1e-5)));
}

void import_embedding_layer_norm(Node& node, Op op) {
  const std::vector<ValueId>&ids = node.all("Ids"), &tables = node.all("Embs");
  if (ids.empty() || ids.size() != tables.size()) return node.corrupt("another number of tables than of ids");
  ValueId sum = kNone;
  for (size_t i = 0; i < ids.size(); ++i) {
    ValueId id = ids[i];
    if (node.b.rank(id) == size_t{3} && node.b.size(id, 2) == 1) id = node.b.squeeze(id, {2});
    const ValueId rows = node.binary(op, tables[i], id, {{"axis", int64_t{0}}});
    sum = sum == kNone ? rows : node.binary(Op::kAdd, sum, rows);
  }
  node.out("Out", layer_norm(node, sum, node.in("Scale"), node.maybe("Bias"), node.number("epsilon", 1e-5)));
}

void import_bias_residual_layer_norm(Node& node, Op op) {
  const ValueId sum = node.binary(op, plus(node, node.in("X"), node.maybe("Bias")), node.in("Residual"));
  node.out("Y", layer_norm(node, sum, node.maybe("LnScale"), node.maybe("LnBias"), node.number("ln_epsilon", 1e-5)));
}

void import_fc_layer_norm(Node& node, Op op) {
  ValueId y = plus(node, node.binary(op, node.in("X"), node.in("W")), node.maybe("Bias0"));
  y = node.binary(Op::kAdd, activate(node, node.text("activation_type", ""), y), node.in("Y"));
  node.out("Out", layer_norm(node, y, node.maybe("Scale"), node.maybe("Bias1"), node.number("epsilon", 1e-5)));
}

void import_softmax_mask(Node& node, Op op) {
  node.out("Out", node.unary(op, node.binary(Op::kAdd, node.in("X"), node.in("Mask")), {{"axis", int64_t{-1}}}));
}

/// Scores of later positions do not count.
ValueId causal(Node& node, ValueId scores) {
  const ValueId lowest = node.b.number(DType::kFloat32, -10000);
  const ValueId square = node.b.add(Op::kExpand, {lowest, node.b.slice(node.shape_of(scores), 0, -2, std::numeric_limits<int64_t>::max())});
  return node.binary(Op::kAdd, scores, node.b.add(Op::kTrilu, {square, node.b.number(DType::kInt64, 1)}, {{"upper", int64_t{1}}}));
}

void import_softmax_mask_upper(Node& node, Op op) { node.out("Out", node.unary(op, causal(node, node.in("X")), {{"axis", int64_t{-1}}})); }

/// flash_attn and memory_efficient_attention: operands of [batch, length, heads, head].
void import_attention(Node& node, Op op) {
  const ValueId q = node.in("q"), k = node.in("k"), v = node.in("v"), mask = node.maybe("attn_mask");
  const auto head = node.b.size(q, 3);
  if (!head || *head < 1 || node.b.size(q, 2) != node.b.size(k, 2))
    return node.refuse("attention with heads in groups, or of unknown size");
  const double given = node.number("scale", -1), scale = given > 0 ? given : 1 / std::sqrt(static_cast<double>(*head));
  ValueId scores = node.binary(op, node.b.transpose(q, {0, 2, 1, 3}), node.b.transpose(k, {0, 2, 3, 1}));
  scores = plus(node, node.with_number(Op::kMul, scores, scale), mask);
  if (node.flag("causal")) scores = causal(node, scores);
  const ValueId weights = node.unary(Op::kSoftmax, scores, {{"axis", int64_t{-1}}});
  node.out("out", node.b.transpose(node.binary(op, weights, node.b.transpose(v, {0, 2, 1, 3})), {0, 2, 1, 3}));
}

void import_rms_norm(Node& node, Op op) {
  node.out("y", node.binary(op, node.in("x"), node.in("scale"), {{"axis", int64_t{-1}}, {"epsilon", node.number("epsilon", 1e-6)}}));
}

void import_dropout_add(Node& node, Op op) { node.out("out", node.binary(op, node.in("x"), node.in("y"))); }

constexpr OperatorRow kTransformerRows[] = {
    {"", "flash_attn", "q k v fixed_seed_offset attn_mask", "out", import_attention, Op::kMatMul},
    {"", "memory_efficient_attention", "q k v attn_mask", "out", import_attention, Op::kMatMul},
    {"fused_attention", "fused_attention", "X LnScale LnBias QKVW QKVBias CacheKV SrcMask OutLinearW OutLinearBias Ln2Scale Ln2Bias",
     "LnMean LnVariance LnOut QKVOut QKVBiasOut TransposeOut2 QKOut QKTVOut SoftmaxOut AttnDropoutMaskOut AttnDropoutOut SrcMaskOut "
     "FMHAOut "
     "OutLinearOut DropoutMaskOut Ln2Mean Ln2Variance BiasDropoutResidualOut CacheKVOut Y",
     import_fused_attention},
    {"fused_bias_dropout_residual_layer_norm", "fused_bias_dropout_residual_layer_norm", "X Residual Bias LnScale LnBias", "Y",
     import_bias_residual_layer_norm, Op::kAdd},
    {"", "fused_dropout_add", "x y", "out", import_dropout_add, Op::kAdd},
    {"fused_embedding_eltwise_layernorm", "fused_embedding_eltwise_layernorm", "Ids Embs Bias Scale", "Out", import_embedding_layer_norm,
     Op::kGather},
    {"fused_fc_elementwise_layernorm", "fused_fc_elementwise_layernorm", "X W Y Bias0 Scale Bias1", "Out", import_fc_layer_norm,
     Op::kMatMul},
    {"fused_feedforward", "fused_feedforward",
     "X Dropout1Seed Dropout2Seed Linear1Weight Linear1Bias Linear2Weight Linear2Bias Ln1Scale Ln1Bias Ln2Scale Ln2Bias", "Out",
     import_fused_feedforward},
    {"fused_softmax_mask", "fused_softmax_mask", "X Mask", "Out", import_softmax_mask, Op::kSoftmax},
    {"fused_softmax_mask_upper_triangle", "fused_softmax_mask_upper_triangle", "X", "Out", import_softmax_mask_upper, Op::kSoftmax},
    {"multihead_matmul", "multihead_matmul", "Input W Bias BiasQK", "Out", import_multihead_matmul},
    {"", "fast_rms_norm rms_norm", "x scale", "y", import_rms_norm, Op::kRMSNormalization},
    {"skip_layernorm", "skip_layernorm", "X Y Scale Bias", "Out", import_skip_layer_norm, Op::kAdd},
};

}  // namespace

std::span<const OperatorRow> transformer_operators() { return kTransformerRows; }

}  // namespace serin::formats::paddle
