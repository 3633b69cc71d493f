// microsoft_attention.cc: com.microsoft's Attention, QAttention and MultiHeadAttention as ONNX's Attention: the projection, the splits, the biases and the
// many forms of the mask are steps before it.
//
// A mask of integers says which keys are looked at; the others get mask_filter_value added, not minus infinity. It is [batch, keys],
// [batch, queries, keys], or [batch]: how many keys of each sample are looked at.

#include <fmt/format.h>

#include "runtime/formats/onnx/microsoft.h"

namespace serin::formats::onnx {

using graph::kNone;
using graph::Op;
using graph::ValueId;

namespace {

struct Operands {
  ValueId q = kNone, k = kNone, v = kNone;  // [batch, length, heads * head]
  ValueId mask = kNone, bias = kNone;       // of integers; added to the scores
  size_t mask_operand = 0;
  ValueId past_key = kNone, past_value = kNone;  // [batch, heads, past, head]
};

/// The number of keys, those of the past included, as a vector of one.
ValueId key_count(NodeImport& node, const Operands& o) {
  const ValueId fresh = dim_step(node, "kv_length", o.k, 1);
  return o.past_key == kNone ? fresh : add_step(node, "total_length", fresh, dim_step(node, "past_length", o.past_key, 2));
}

/// Whether each key is looked at: bool [batch, 1, queries or 1, keys].
ValueId looked_at(NodeImport& node, const Operands& o) {
  const ValueId keys = key_count(node, o), batch = dim_step(node, "batch", o.q, 0);
  if (node.inferred_rank(o.mask_operand) == 1) {
    const ValueId end = node.step(Op::kSqueeze, "keys", {keys}, {{"axes", Integers{0}}});
    const ValueId index = node.step(Op::kRange, "key_index", {index_step(node, "zero", 0), end, index_step(node, "one", 1)});
    const ValueId counts = node.step(Op::kUnsqueeze, "counts", {node.step(Op::kCast, "counts_i64", {o.mask}, {{"to", std::string("i64")}})},
                                     {{"axes", Integers{1, 2, 3}}});
    return node.step(Op::kLess, "within", {index, counts});
  }
  const ValueId shape =
      node.step(Op::kConcat, "mask_shape", {batch, integers_step(node, "any_queries", {1, -1}), keys}, {{"axis", int64_t{0}}});
  const ValueId mask = node.step(Op::kReshape, "mask", {o.mask, shape}, {{"allowzero", int64_t{0}}});
  return node.step(Op::kCast, "mask_bool", {mask}, {{"to", std::string("bool")}});
}

ValueId added_to_scores(NodeImport& node, const Operands& o) {
  const double filter = node.number("mask_filter_value", -10000);
  if (o.mask == kNone) return o.bias;
  const ValueId mask = node.step(Op::kWhere, "mask_added",
                                 {looked_at(node, o), number_like(node, "seen", 0, o.q), number_like(node, "filtered", filter, o.q)});
  return add_step(node, "mask_and_bias", mask, o.bias);
}

/// The Attention itself; its outputs.
std::vector<ValueId> attend(NodeImport& node, const Operands& o) {
  const int64_t heads = node.required_integer("num_heads");
  graph::Attributes attributes{{"q_num_heads", heads}, {"kv_num_heads", heads}};
  if (node.flag("unidirectional", false)) attributes.emplace("is_causal", int64_t{1});
  if (const double scale = node.number("scale", 0); scale != 0) attributes.emplace("scale", scale);
  std::vector<ValueId> operands = {o.q, o.k, o.v, added_to_scores(node, o), o.past_key, o.past_value};
  while (operands.back() == kNone) operands.pop_back();
  graph::Graph& graph = node.graph();
  return graph.node(graph.add_node(Op::kAttention, node.name(), std::move(operands), std::move(attributes), 3)).outputs;
}

bool is_rank(NodeImport& node, size_t operand, size_t rank) { return node.inferred_rank(operand) == rank; }

/// Attention of what is projected [batch, length, q + k + v]; past and present are [2, batch, heads, length, head].
void attend_to_projected(NodeImport& node, ValueId projected, size_t mask, size_t past, ValueId bias) {
  if (node.flag("do_rotary", false)) node.unsupported("rotates q and k itself (do_rotary)");
  if (node.flag("past_present_share_buffer", false)) node.unsupported("past and present share a buffer");
  if (is_rank(node, mask, 4)) node.unsupported("a mask of rank 4");
  const auto parts = split_step(node, "qkv", projected, -1, 3, node.integers("qkv_hidden_sizes").value_or(Integers{}));
  Operands o{.q = parts[0], .k = parts[1], .v = parts[2], .mask = node.input(mask), .bias = bias, .mask_operand = mask};
  if (node.input(past) != kNone) {
    const auto half = [&](std::string_view name, int64_t i) {
      return node.step(Op::kGather, name, {node.input(past), index_step(node, fmt::format("{}_index", name), i)}, {{"axis", int64_t{0}}});
    };
    o.past_key = half("past_key", 0), o.past_value = half("past_value", 1);
  }
  const auto results = attend(node, o);
  define_output(node, 0, results[0]);
  if (!node.wants_output(1)) return;
  const auto stacked = [&](std::string_view name, ValueId x) { return node.step(Op::kUnsqueeze, name, {x}, {{"axes", Integers{0}}}); };
  define_output(node, 1,
                node.step(Op::kConcat, "present", {stacked("present_key", results[1]), stacked("present_value", results[2])},
                          {{"axis", int64_t{0}}}));
}

}  // namespace

void import_microsoft_attention(NodeImport& node, Op) {
  if (node.input(6) != kNone) node.unsupported("past and present share a buffer");
  node.ignore("rotary_embedding_dim");
  const ValueId product = node.step(Op::kMatMul, "products", {node.input(0), node.input(1)});
  attend_to_projected(node, add_step(node, "projected", product, node.input(2)), 3, 4, node.input(5));
}

/// x, weight, bias, x scale, weight scale, mask, x zero, weight zero, past: the projection is a product of bytes.
void import_quantised_attention(NodeImport& node, Op) {
  constexpr size_t kMask = 5, kPast = 8;
  const ValueId whole = node.step(Op::kMatMulInteger, "products", {node.input(0), node.input(1), node.input(6), node.input(7)});
  const ValueId real = node.step(Op::kCast, "real", {whole}, {{"to", std::string("f32")}});
  const ValueId scale = node.step(Op::kMul, "scale", {node.input(3), node.input(4)});
  const ValueId scaled = node.step(Op::kMul, "scaled", {real, scale});
  attend_to_projected(node, add_step(node, "projected", scaled, node.input(2)), kMask, kPast, kNone);
}

void import_multi_head_attention(NodeImport& node, Op) {
  if (node.input(8) != kNone || node.input(9) != kNone) node.unsupported("past and present share a buffer");
  if (node.wants_output(3)) node.unsupported("the scores are asked for");
  if (is_rank(node, 1, 4)) node.unsupported("keys of rank 4");
  if (is_rank(node, 4, 4)) node.unsupported("a mask of rank 4");
  Operands o{.q = node.input(0),
             .k = node.input(1),
             .v = node.input(2),
             .mask = node.input(4),
             .bias = node.input(5),
             .mask_operand = 4,
             .past_key = node.input(6),
             .past_value = node.input(7)};
  const auto rows = [&](std::string_view name, ValueId part) { return reshape_step(node, name, part, {0, 0, -1}); };
  if (o.k == kNone) {  // q [batch, length, heads, 3, head]
    const auto parts = split_step(node, "qkv", o.q, 3, 3);
    o.q = rows("q", parts[0]), o.k = rows("k", parts[1]), o.v = rows("v", parts[2]);
  } else if (o.v == kNone) {  // k [batch, length, heads, 2, head]
    const auto parts = split_step(node, "kv", o.k, 3, 2);
    o.k = rows("k", parts[0]), o.v = rows("v", parts[1]);
  }
  if (node.input(3) != kNone) {
    const auto parts = split_step(node, "biases", node.input(3), 0, 3);
    o.q = add_step(node, "q_biased", o.q, parts[0]);
    o.k = add_step(node, "k_biased", o.k, parts[1]);
    o.v = add_step(node, "v_biased", o.v, parts[2]);
  }
  const auto results = attend(node, o);
  for (size_t i = 0; i < 3; ++i) define_output(node, i, results[i]);
}

void import_microsoft_rotary_embedding(NodeImport& node, Op op) {
  if (node.flag("is_packed_batching", false)) node.unsupported("samples of different lengths are packed");
  if (node.number("scale", 1) != 1) node.unsupported("a scale");
  node.emit(op, {node.input(0), node.input(2), node.input(3), node.input(1)},
            {{"interleaved", node.integer("interleaved", 0)},
             {"num_heads", node.integer("num_heads", 0)},
             {"rotary_embedding_dim", node.integer("rotary_embedding_dim", 0)}});
}

}  // namespace serin::formats::onnx
