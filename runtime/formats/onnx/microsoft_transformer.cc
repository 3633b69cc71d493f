// microsoft_transformer.cc: reads com.microsoft's activations and normalisations with a bias or a residual, as ONNX Runtime's optimiser
// writes them. They become the sums, activations and norms that they stand for; the passes join them again for Serin's kernels.

#include <fmt/format.h>

#include <functional>
#include <string>

#include "runtime/formats/onnx/microsoft.h"

namespace serin::formats::onnx {

using graph::kNone;
using graph::Op;
using graph::ValueId;

void import_bias_gelu(NodeImport& node, Op op) {
  node.emit(op, {add_step(node, "sum", node.input(0), node.input(1))}, {{"approximate", std::string("none")}});
}

void import_fast_gelu(NodeImport& node, Op op) {
  node.emit(op, {add_step(node, "sum", node.input(0), node.input(1))}, {{"approximate", std::string("tanh")}});
}

void import_quick_gelu(NodeImport& node, Op op) { node.emit(op, {node.input(0)}, {{"alpha", node.number("alpha", 1.702F)}}); }

/// The first half of the channels times the gelu of the second.
void import_bias_split_gelu(NodeImport& node, Op op) {
  const auto halves = split_step(node, "halves", add_step(node, "sum", node.input(0), node.input(1)), -1, 2);
  node.emit(op, {halves[0], node.step(Op::kGelu, "gelu", {halves[1]}, {{"approximate", std::string("none")}})});
}

void import_bias_add(NodeImport& node, Op op) { node.emit(op, {add_step(node, "sum", node.input(0), node.input(1)), node.input(2)}); }

/// Nothing is dropped at inference: x + bias + residual.
void import_bias_dropout(NodeImport& node, Op op) {
  node.ignore("seed");
  if (node.wants_output(1)) node.unsupported("the mask is asked for");
  if (node.input(4) != kNone) {
    const auto training = node.constant(4);
    const auto mode = training ? graph::integers_of(*training) : std::nullopt;
    if (!mode || mode->size() != 1 || mode->front() != 0)
      return node.unsupported("training_mode is on or computed; export the model for inference");
  }
  if (node.input(2) == kNone) {
    node.emit(op, {node.input(0), node.input(1)});
    return;
  }
  node.emit(op, {add_step(node, "sum", node.input(0), node.input(1)), node.input(2)});
}

/// Softmax over all axes from `axis` on at once, of data + bias: flattened to rows, and given its shape back.
void import_bias_softmax(NodeImport& node, Op op) {
  const int64_t axis = node.integer("axis", 1);
  node.ignore("is_inner_broadcast");  // says along which axes of 1 the bias is broadcast: its shape says that, too
  const ValueId sum = add_step(node, "sum", node.input(0), node.input(1));
  if (axis == -1) {
    node.emit(op, {sum}, {{"axis", int64_t{-1}}});
    return;
  }
  const ValueId dims = node.step(Op::kShape, "shape", {sum});
  const ValueId rows = node.step(Op::kFlatten, "rows", {sum}, {{"axis", axis}});
  node.emit(Op::kReshape, {node.step(op, "softmax", {rows}, {{"axis", int64_t{-1}}}), dims}, {{"allowzero", int64_t{1}}});
}

namespace {

/// input + skip + bias, which is output 3; mean and variance are for training.
ValueId skipped_sum(NodeImport& node, ValueId bias) {
  if (node.wants_output(1) || node.wants_output(2)) node.unsupported("asks for the statistics; export the model for inference");
  const ValueId sum = add_step(node, "biased", add_step(node, "sum", node.input(0), node.input(1)), bias);
  define_output(node, 3, sum);
  return sum;
}

/// The norm as a step, because the node's other outputs are not its.
void define_norm(NodeImport& node, Op op, std::vector<ValueId> operands) {
  while (operands.back() == kNone) operands.pop_back();
  define_output(node, 0, node.step(op, "norm", std::move(operands), {{"axis", int64_t{-1}}, {"epsilon", node.number("epsilon", 1e-12F)}}));
}

}  // namespace

void import_skip_layer_norm(NodeImport& node, Op op) {
  define_norm(node, op, {skipped_sum(node, node.input(4)), node.input(2), node.input(3)});
}

void import_skip_rms_norm(NodeImport& node, Op op) { define_norm(node, op, {skipped_sum(node, node.input(3)), node.input(2)}); }

void import_simplified_layer_norm(NodeImport& node, Op op) {
  if (node.integer("stash_type", 1) != 1) node.unsupported("computes in another type than float (stash_type)");
  if (node.wants_output(1)) node.unsupported("asks for the statistics; export the model for inference");
  node.emit(op, {node.input(0), node.input(1)}, {{"axis", node.integer("axis", -1)}, {"epsilon", node.number("epsilon", 1e-5F)}});
}

/// The sum of the embeddings of words, positions and segments, normalised. mask_index: how many tokens of each sample are looked at.
namespace {

/// Rows of the table that is operand `table`, as floats.
using Lookup = std::function<ValueId(std::string_view name, size_t table, ValueId indices)>;

void embed(NodeImport& node, Op op, const Lookup& lookup, ValueId positions, ValueId scale, ValueId shift) {
  const ValueId ids = node.input(0), segments = node.input(1), mask = node.input(7);
  if (positions == kNone) {  // 0, 1, ... of each sample
    const ValueId length = node.step(Op::kSqueeze, "length", {dim_step(node, "length_dim", ids, 1)}, {{"axes", Integers{0}}});
    const ValueId row = node.step(Op::kRange, "positions", {index_step(node, "zero", 0), length, index_step(node, "one", 1)});
    positions = node.step(Op::kUnsqueeze, "position_row", {row}, {{"axes", Integers{0}}});
  }
  ValueId sum = add_step(node, "sum", lookup("words", 2, ids), lookup("places", 3, positions));
  if (segments != kNone && node.input(4) != kNone) sum = add_step(node, "sum_segments", sum, lookup("segments", 4, segments));
  node.ignore("mask_index_type");
  define_norm(node, op, {sum, scale, shift});
  define_output(node, 2, sum);
  if (!node.wants_output(1)) return;
  if (mask == kNone) {
    const ValueId batch = dim_step(node, "batch", ids, 0);
    define_output(node, 1,
                  node.step(Op::kExpand, "no_mask",
                            {node.step(Op::kCast, "zero_i32", {index_step(node, "none", 0)}, {{"to", std::string("i32")}}), batch}));
    return;
  }
  define_output(node, 1, node.step(Op::kReduceSum, "mask_index", {mask}, {{"axes", Integers{1}}, {"keepdims", int64_t{0}}}));
}

}  // namespace

void import_embed_layer_norm(NodeImport& node, Op op) {
  for (const size_t i : {2, 3, 5, 6})  // there may be no segments before them
    if (node.input(i) == kNone) return node.corrupt(fmt::format("input {} is missing", i));
  const Lookup lookup = [&](std::string_view name, size_t table, ValueId indices) {
    return node.step(Op::kGather, name, {node.input(table), indices}, {{"axis", int64_t{0}}});
  };
  embed(node, op, lookup, node.input(8), node.input(5), node.input(6));
}

/// The tables, scale and shift are bytes: operand i has its scale in 6 + i and its zero point in 11 + i. Only the rows looked up become floats.
void import_quantised_embed_layer_norm(NodeImport& node, Op op) {
  const auto real = [&](std::string_view name, ValueId bytes, size_t i) {
    return node.step(Op::kDequantizeLinear, name, {bytes, node.input(6 + i), node.input(11 + i)},
                     {{"axis", int64_t{0}}, {"block_size", int64_t{0}}});
  };
  const Lookup lookup = [&](std::string_view name, size_t table, ValueId indices) {
    const ValueId rows = node.step(Op::kGather, std::string(name) + "_bytes", {node.input(table), indices}, {{"axis", int64_t{0}}});
    return real(name, rows, table);
  };
  embed(node, op, lookup, kNone, real("scale", node.input(5), 5), real("shift", node.input(6), 6));
}

/// GroupNormalization of [n, h, w, c], perhaps with a SiLU behind it.
void import_group_norm_nhwc(NodeImport& node, Op op) {
  const bool channels_last = node.flag("channels_last", true), silu = node.required_integer("activation") != 0;
  const graph::Attributes attributes{{"num_groups", node.required_integer("groups")}, {"epsilon", node.number("epsilon", 1e-5F)}};
  ValueId x = node.input(0);
  if (channels_last) x = node.step(Op::kTranspose, "channels_first", {x}, {{"perm", Integers{0, 3, 1, 2}}});
  ValueId y = node.step(op, "norm", {x, node.input(1), node.input(2)}, attributes);
  if (silu) y = node.step(Op::kSwish, "silu", {y}, {{"alpha", 1.0}});
  if (channels_last) y = node.step(Op::kTranspose, "channels_last", {y}, {{"perm", Integers{0, 2, 3, 1}}});
  define_output(node, 0, y);
}

/// Values in the order in which they first occur; ONNX's operator has one output more.
void import_microsoft_unique(NodeImport& node, Op op) {
  graph::Graph& graph = node.graph();
  const graph::NodeId id = graph.add_node(op, node.name(), {node.input(0)}, {{"sorted", int64_t{0}}}, 4);
  define_output(node, 0, graph.output(id, 0));
  define_output(node, 1, graph.output(id, 2));
  define_output(node, 2, graph.output(id, 3));
}

}  // namespace serin::formats::onnx
