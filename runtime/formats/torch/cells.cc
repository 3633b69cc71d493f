// cells.cc: one step of a recurrent network, as LSTMCell, GRUCell and RNNCell call it. Rows of the weights are in torch's order of gates.

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::kNone;
using graph::Op;
using graph::ValueId;

/// x w' + bias.
ValueId layer(NodeImport& node, ValueId x, std::string_view weight, std::string_view bias) {
  return node.b.add(Op::kGemm, {x, node.tensor(weight), node.optional_tensor(bias)}, {{"transB", int64_t{1}}});
}

std::vector<ValueId> gates_of(NodeImport& node, ValueId x, size_t gates) {
  return node.b.add_with_results(Op::kSplit, gates, {x}, {{"axis", int64_t{1}}});
}

/// False, and an error, for a step without a batch.
bool has_batch(NodeImport& node, ValueId x) {
  if (node.rank(x) == 2) return true;
  node.unsupported("a step without a batch");
  return false;
}

/// c' = f c + i g, h' = o tanh(c').
void import_lstm_cell(NodeImport& node, Op) {
  const ValueId x = node.tensor("input");
  const std::vector<ValueId> state = node.tensors("hx");
  if (!has_batch(node, x)) return;
  if (state.size() != 2) return node.corrupt("a state of other than two tensors");
  const ValueId sums = node.b.add(Op::kAdd, {layer(node, x, "w_ih", "b_ih"), layer(node, state[0], "w_hh", "b_hh")});
  const auto gates = gates_of(node, sums, 4);
  const auto sigmoid = [&](size_t gate) { return node.b.add(Op::kSigmoid, {gates[gate]}); };
  const ValueId kept = node.b.add(Op::kMul, {sigmoid(1), state[1]});
  const ValueId taken = node.b.add(Op::kMul, {sigmoid(0), node.b.add(Op::kTanh, {gates[2]})});
  const ValueId c = node.b.add(Op::kAdd, {kept, taken});
  node.give({node.b.add(Op::kMul, {sigmoid(3), node.b.add(Op::kTanh, {c})}), c});
}

/// n = tanh(x + r h), h' = n + z (h - n).
void import_gru_cell(NodeImport& node, Op) {
  const ValueId x = node.tensor("input"), h = node.tensor("hx");
  if (!has_batch(node, x)) return;
  const auto from_x = gates_of(node, layer(node, x, "w_ih", "b_ih"), 3), from_h = gates_of(node, layer(node, h, "w_hh", "b_hh"), 3);
  const auto sigmoid = [&](size_t gate) { return node.b.add(Op::kSigmoid, {node.b.add(Op::kAdd, {from_x[gate], from_h[gate]})}); };
  const ValueId reset = sigmoid(0), update = sigmoid(1);
  const ValueId candidate = node.b.add(Op::kTanh, {node.b.add(Op::kAdd, {from_x[2], node.b.add(Op::kMul, {reset, from_h[2]})})});
  const ValueId difference = node.b.add(Op::kSub, {h, candidate});
  node.give(node.b.add(Op::kAdd, {candidate, node.b.add(Op::kMul, {update, difference})}));
}

void import_plain_cell(NodeImport& node, Op op) {
  const ValueId x = node.tensor("input");
  if (!has_batch(node, x)) return;
  const ValueId sums = node.b.add(Op::kAdd, {layer(node, x, "w_ih", "b_ih"), layer(node, node.tensor("hx"), "w_hh", "b_hh")});
  node.give(node.b.add(op, {sums}));
}

constexpr OperatorRow kCells[] = {
    {"aten.gru_cell", import_gru_cell},
    {"aten.lstm_cell", import_lstm_cell},
    {"aten.rnn_relu_cell", import_plain_cell, Op::kRelu},
    {"aten.rnn_tanh_cell", import_plain_cell, Op::kTanh},
};

}  // namespace

std::span<const OperatorRow> cell_operators() { return kCells; }

}  // namespace serin::formats::torch
