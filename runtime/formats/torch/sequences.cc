// sequences.cc: attention and recurrent networks.

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::Attributes;
using graph::kNone;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

/// In the steps that torch's exporter to ONNX writes, which fuse_attention knows. A query that may attend to nothing gives zeros.
ValueId spelled_out(NodeImport& node, ValueId q, ValueId k, ValueId v, ValueId mask, double scale) {
  const DType dtype = node.b.dtype(q);
  const ValueId half = node.b.number(dtype, std::sqrt(scale)), zero = node.b.number(dtype, 0);
  const ValueId turned = node.b.transpose(k, {0, 1, 3, 2});
  ValueId scores = node.b.add(Op::kMatMul, {node.b.add(Op::kMul, {q, half}), node.b.add(Op::kMul, {turned, half})});
  if (mask != kNone && node.b.dtype(mask) == DType::kBool)
    mask = node.b.add(Op::kWhere, {mask, zero, node.b.number(dtype, -std::numeric_limits<double>::infinity())});
  if (mask != kNone) scores = node.b.add(Op::kAdd, {scores, mask});
  ValueId shares = node.b.add(Op::kSoftmax, {scores}, {{"axis", int64_t{-1}}});
  if (mask != kNone) shares = node.b.add(Op::kWhere, {node.b.add(Op::kIsNaN, {shares}), zero, shares});
  return node.b.add(Op::kMatMul, {shares, v});
}

/// Operands [batch, heads, length, head]; other ranks get or lose axes in front.
void import_attention(NodeImport& node, Op op) {
  if (node.number("dropout_p", 0) != 0) return node.unsupported("is in training mode: call model.eval() before the export");
  ValueId q = node.tensor("query"), k = node.tensor("key"), v = node.tensor("value"), mask = node.optional_tensor("attn_mask");
  if (mask == kNone) mask = node.optional_tensor("attn_bias");
  const size_t rank = node.rank(q);
  if (rank != 3 && rank != 4) return node.unsupported(fmt::format("operands of rank {}", rank));
  if (rank == 3) {
    for (ValueId* operand : {&q, &k, &v}) *operand = node.b.unsqueeze(*operand, {1});
    if (mask != kNone && node.rank(mask) == 3) mask = node.b.unsqueeze(mask, {1});
  }
  if (mask != kNone && node.b.dtype(mask) != DType::kBool) mask = node.b.cast(mask, node.b.dtype(q));
  const auto head = node.b.size(q, 3), heads = node.b.size(q, 1);
  const auto given = node.optional_number("scale");
  ValueId y = kNone;
  if (node.flag("is_causal", false) || !head || !heads || node.b.size(k, 1) != heads) {
    Attributes attributes;
    if (node.flag("is_causal", false)) attributes.insert_or_assign("is_causal", int64_t{1});
    if (given) attributes.insert_or_assign("scale", *given);
    y = node.b.add(op, {q, k, v, mask}, attributes);
  } else {
    y = spelled_out(node, q, k, v, mask, given.value_or(1 / std::sqrt(static_cast<double>(*head))));
  }
  node.give({rank == 3 ? node.b.squeeze(y, {1}) : y, kNone, kNone, kNone, kNone, kNone, kNone, kNone, kNone});
}

/// Rows [gates * hidden, ...] from torch's order of gates into ONNX's, for one direction: [1, gates * hidden, ...].
ValueId gates_in_order(NodeImport& node, ValueId weights, const List& order) {
  const auto parts = node.b.add_with_results(Op::kSplit, order.size(), {weights}, {{"axis", int64_t{0}}});
  std::vector<ValueId> sorted;
  for (const int64_t gate : order) sorted.push_back(parts[static_cast<size_t>(gate)]);
  const ValueId whole = order.size() == 1 ? weights : node.b.add(Op::kConcat, sorted, {{"axis", int64_t{0}}});
  return node.b.unsqueeze(whole, {0});
}

ValueId joined(NodeImport& node, const std::vector<ValueId>& parts, int64_t axis) {
  return parts.size() == 1 ? parts[0] : node.b.add(Op::kConcat, parts, {{"axis", axis}});
}

/// lstm.input, gru.input, rnn_tanh.input, rnn_relu.input: layers one after the other, each of one direction or both.
void import_recurrent(NodeImport& node, Op op) {
  if (node.has("data") || node.has("batch_sizes")) return node.unsupported("packed sequences");
  if (node.flag("train", false)) return node.unsupported("is in training mode: call model.eval() before the export");
  const bool lstm = op == Op::kLSTM, biases = node.flag("has_biases", true), batch_first = node.flag("batch_first", false);
  const int64_t layers = node.integer("num_layers", 1), directions = node.flag("bidirectional", false) ? 2 : 1;
  const std::vector<ValueId> weights = node.tensors("params"), states = lstm ? node.tensors("hx") : std::vector{node.tensor("hx")};
  const size_t each = biases ? 4 : 2;
  if (layers < 1 || layers > 1000 || weights.size() != static_cast<size_t>(layers * directions) * each || states.size() != (lstm ? 2U : 1U))
    return node.unsupported(fmt::format("{} weights for {} layers (projections have more)", weights.size(), layers));
  // torch: input, forget, cell, output; reset, update, new. ONNX: input, output, forget, cell; update, reset, hidden.
  const List order = lstm ? List{0, 3, 1, 2} : op == Op::kGRU ? List{1, 0, 2} : List{0};
  const auto hidden = node.b.size(weights[1], 1);
  constexpr int64_t kMostUnits = int64_t{1} << 31;
  if (!hidden || *hidden > kMostUnits) return node.unsupported("an unknown number of hidden units");
  ValueId x = node.tensor("input");
  if (node.rank(x) != 3) return node.unsupported("a sequence without a batch");
  if (batch_first) x = node.b.transpose(x, {1, 0, 2});
  std::vector<ValueId> last_h, last_c;
  for (int64_t layer = 0; layer < layers; ++layer) {
    std::vector<ValueId> w, r, bias;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const ValueId* const from = weights.data() + static_cast<size_t>(layer * directions + direction) * each;
      w.push_back(gates_in_order(node, from[0], order));
      r.push_back(gates_in_order(node, from[1], order));
      if (biases) bias.push_back(joined(node, {gates_in_order(node, from[2], order), gates_in_order(node, from[3], order)}, 1));
    }
    const auto state = [&](size_t which) {
      return layers == 1 ? states[which] : sliced(node.b, states[which], 0, layer * directions, (layer + 1) * directions);
    };
    Attributes attributes = {{"hidden_size", *hidden}, {"direction", std::string(directions == 2 ? "bidirectional" : "forward")}};
    if (op == Op::kGRU) attributes.insert_or_assign("linear_before_reset", int64_t{1});
    if (node.node().target.find("rnn_relu") != std::string::npos)
      attributes.insert_or_assign("activations", std::vector<std::string>(static_cast<size_t>(directions), "Relu"));
    std::vector<ValueId> operands = {x, joined(node, w, 0), joined(node, r, 0), biases ? joined(node, bias, 0) : kNone, kNone, state(0)};
    if (lstm) operands.push_back(state(1));
    const auto results = node.b.add_with_results(op, lstm ? 3 : 2, operands, attributes);
    const ValueId steps = results[0];  // [length, directions, batch, hidden]
    x = directions == 1 ? node.b.squeeze(steps, {1}) : node.b.reshape(node.b.transpose(steps, {0, 2, 1, 3}), {0, 0, directions * *hidden});
    last_h.push_back(results[1]);
    if (lstm) last_c.push_back(results[2]);
  }
  if (batch_first) x = node.b.transpose(x, {1, 0, 2});
  std::vector<ValueId> given = {x, joined(node, last_h, 0)};
  if (lstm) given.push_back(joined(node, last_c, 0));
  node.give(given);
}

constexpr OperatorRow kSequences[] = {
    {"aten._scaled_dot_product_efficient_attention", import_attention, Op::kAttention},
    {"aten._scaled_dot_product_flash_attention_for_cpu", import_attention, Op::kAttention},
    {"aten.gru.input", import_recurrent, Op::kGRU},
    {"aten.lstm.input", import_recurrent, Op::kLSTM},
    {"aten.rnn_relu.input", import_recurrent, Op::kRNN},
    {"aten.rnn_tanh.input", import_recurrent, Op::kRNN},
    {"aten.scaled_dot_product_attention", import_attention, Op::kAttention},
};

}  // namespace

std::span<const OperatorRow> sequence_operators() { return kSequences; }

}  // namespace serin::formats::torch
