// recurrent_cell.cc: the cells as Keras writes them.
//
//   LSTM   z = x w + h u + b, in four parts i, f, g, o
//          c' = sigmoid(f) * c + sigmoid(i) * tanh(g)        h' = sigmoid(o) * tanh(c')
//
//   GRU    x w + b and h u + r, each in three parts z, r, h (reset_after)
//          z = sigmoid(xz + hz)   r = sigmoid(xr + hr)   n = tanh(xh + r * hh)        h' = z * h + (1 - z) * n
//
// The canonical operators want the gates of an LSTM as i, o, f, c, each gate's rows first. Weights of a file stay recipes.

#include "runtime/formats/tensorflow/recurrent_cell.h"

#include <algorithm>

namespace serin::formats::tf {
namespace {

using graph::ConstantPtr;
using graph::Graph;
using graph::NodeId;
using graph::Op;

/// Operands of a node of that operator in one order, then in the other, until `take` is content.
template <class Take>
bool either_order(const Graph& g, ValueId value, Op op, Take&& take) {
  const NodeId id = g.producer(value);
  if (!g.is(id, op)) return false;
  return take(g.input(id, 0), g.input(id, 1)) || take(g.input(id, 1), g.input(id, 0));
}

ValueId operand_of(const Graph& g, ValueId value, Op op) {
  const NodeId id = g.producer(value);
  return g.is(id, op) ? g.input(id, 0) : kNone;
}

/// The value of which `value` is one of so many equal parts along the last axis, by Split or Slice; kNone otherwise.
ValueId whole_of(const Graph& g, ValueId value, size_t part, size_t parts) {
  const NodeId id = g.producer(value);
  if (g.is(id, Op::kSplit)) {
    if (g.node(id).outputs.size() != parts || g.node(id).outputs[part] != value) return kNone;
    const std::vector<int64_t> sizes = g.node(id).integers("split");
    const int64_t axis = g.node(id).integer("axis", 0);
    const bool equal = std::ranges::all_of(sizes, [&](int64_t size) { return size == sizes[0]; });
    return equal && (axis == 1 || axis == -1) ? g.input(id, 0) : kNone;
  }
  if (!g.is(id, Op::kSlice)) return kNone;
  const auto one = [&](std::string_view key) {
    const std::vector<int64_t> values = g.node(id).integers(key);
    return values.size() == 1 ? values[0] : -1;
  };
  const auto& dims = g.value(g.input(id, 0)).type.shape;
  const auto whole = dims && dims->size() == 2 ? dims->back().value() : std::nullopt;
  if (!whole || one("axes") != 1 || one("steps") != 1 || *whole % static_cast<int64_t>(parts) != 0) return kNone;
  const int64_t size = *whole / static_cast<int64_t>(parts), begin = size * static_cast<int64_t>(part);
  const bool is_part = one("starts") == begin && std::min(one("ends"), *whole) == begin + size;
  return is_part ? g.input(id, 0) : kNone;
}

/// A product of `x` and a constant of rank 2 in f32.
bool is_product(const Graph& g, ValueId value, ValueId& x, ConstantPtr& weight) {
  const NodeId id = g.producer(value);
  if (!g.is(id, Op::kMatMul)) return false;
  x = g.input(id, 0);
  weight = g.constant(g.input(id, 1));
  return weight && weight->dtype == DType::kFloat32 && weight->shape.rank() == 2;
}

bool is_bias(const Graph& g, ValueId value, int64_t size, ConstantPtr& bias) {
  bias = g.constant(value);
  return bias && bias->dtype == DType::kFloat32 && bias->elements() == size && bias->shape.back() == size;
}

/// [in, gates * units] -> [1, gates * units, in]; gate i of the result is gate order[i].
ConstantPtr gates_first(const ConstantPtr& weight, const std::vector<int64_t>& order) {
  const int64_t rows = weight->shape[0], columns = weight->shape[1], units = columns / static_cast<int64_t>(order.size());
  return graph::make_constant(DType::kFloat32, Shape{1, columns, rows}, [=](std::span<std::byte> bytes) -> Status {
    const auto from = weight->span<float>();
    auto* to = reinterpret_cast<float*>(bytes.data());
    for (const int64_t gate : order)
      for (int64_t unit = 0; unit < units; ++unit)
        for (int64_t row = 0; row < rows; ++row) *to++ = from[static_cast<size_t>(row * columns + gate * units + unit)];
    return {};
  });
}

/// Both biases, those of the input and of the recurrence; null counts as zeros.
ConstantPtr joined_bias(const ConstantPtr& input, const ConstantPtr& recurrence, const std::vector<int64_t>& order, int64_t units) {
  std::vector<float> values;
  for (const ConstantPtr& bias : {input, recurrence})
    for (const int64_t gate : order)
      for (int64_t unit = 0; unit < units; ++unit)
        values.push_back(bias ? bias->span<float>()[static_cast<size_t>(gate * units + unit)] : 0.0F);
  return graph::make_constant(DType::kFloat32, Shape{1, static_cast<int64_t>(values.size())}, values.data());
}

bool fits(const ConstantPtr& weight, const ConstantPtr& recurrence, int64_t gates) {
  return weight->shape[1] == gates * recurrence->shape[0] && recurrence->shape[1] == weight->shape[1];
}

std::optional<RecurrentCell> find_lstm(const Graph& g, ValueId h, ValueId c, ValueId h_next, ValueId c_next) {
  ValueId z = kNone;
  const auto gate = [&](ValueId value, Op function, size_t part) {
    const ValueId whole = whole_of(g, operand_of(g, value, function), part, 4);
    if (whole == kNone || (z != kNone && z != whole)) return false;
    z = whole;
    return true;
  };
  const bool output = either_order(g, h_next, Op::kMul,
                                   [&](ValueId o, ValueId t) { return operand_of(g, t, Op::kTanh) == c_next && gate(o, Op::kSigmoid, 3); });
  const bool memory =
      output && either_order(g, c_next, Op::kAdd, [&](ValueId kept, ValueId added) {
        return either_order(g, kept, Op::kMul, [&](ValueId f, ValueId old) { return old == c && gate(f, Op::kSigmoid, 1); }) &&
               either_order(g, added, Op::kMul, [&](ValueId i, ValueId t) { return gate(i, Op::kSigmoid, 0) && gate(t, Op::kTanh, 2); });
      });
  if (!memory) return std::nullopt;
  RecurrentCell cell;
  ConstantPtr w, u, bias;
  const auto products = [&](ValueId sum) {
    return either_order(g, sum, Op::kAdd, [&](ValueId of_x, ValueId of_h) {
      ValueId state = kNone;
      return is_product(g, of_x, cell.step, w) && is_product(g, of_h, state, u) && state == h && fits(w, u, 4);
    });
  };
  const bool biased =
      either_order(g, z, Op::kAdd, [&](ValueId sum, ValueId b) { return products(sum) && is_bias(g, b, w->shape[1], bias); });
  if (!biased && !products(z)) return std::nullopt;
  cell.units = u->shape[0];
  const std::vector<int64_t> order = {0, 3, 1, 2};
  cell.weight = gates_first(w, order);
  cell.recurrence = gates_first(u, order);
  cell.bias = joined_bias(biased ? bias : nullptr, nullptr, order, cell.units);
  return cell;
}

std::optional<RecurrentCell> find_gru(const Graph& g, ValueId h, ValueId h_next) {
  ValueId of_x = kNone, of_h = kNone;
  const auto part_of = [&](ValueId value, ValueId& whole, size_t part) {
    const ValueId found = whole_of(g, value, part, 3);
    if (found == kNone || (whole != kNone && whole != found)) return false;
    whole = found;
    return true;
  };
  const auto gate = [&](ValueId value, size_t part) {
    return either_order(g, operand_of(g, value, Op::kSigmoid), Op::kAdd,
                        [&](ValueId x, ValueId y) { return part_of(x, of_x, part) && part_of(y, of_h, part); });
  };
  const auto candidate = [&](ValueId value) {
    return either_order(g, operand_of(g, value, Op::kTanh), Op::kAdd, [&](ValueId x, ValueId reset) {
      return part_of(x, of_x, 2) &&
             either_order(g, reset, Op::kMul, [&](ValueId r, ValueId y) { return gate(r, 1) && part_of(y, of_h, 2); });
    });
  };
  const auto is_rest = [&](ValueId value, ValueId z) {
    const NodeId id = g.producer(value);
    const ConstantPtr one = g.is(id, Op::kSub) ? g.constant(g.input(id, 0)) : nullptr;
    return one && one->elements() == 1 && graph::number_of(*one) == 1.0 && g.input(id, 1) == z;
  };
  const bool found = either_order(g, h_next, Op::kAdd, [&](ValueId kept, ValueId added) {
    return either_order(g, kept, Op::kMul, [&](ValueId z, ValueId old) {
      return old == h &&
             either_order(g, added, Op::kMul, [&](ValueId rest, ValueId n) { return is_rest(rest, z) && gate(z, 0) && candidate(n); });
    });
  });
  if (!found || of_x == kNone || of_h == kNone) return std::nullopt;
  RecurrentCell cell;
  cell.op = Op::kGRU;
  ConstantPtr w, u, input_bias, recurrent_bias;
  ValueId state = kNone;
  const auto with_bias = [&](ValueId value, ValueId& x, ConstantPtr& weight, ConstantPtr& bias) {
    if (is_product(g, value, x, weight)) return true;
    return either_order(g, value, Op::kAdd, [&](ValueId product, ValueId b) {
      return is_product(g, product, x, weight) && is_bias(g, b, weight->shape[1], bias);
    });
  };
  if (!with_bias(of_x, cell.step, w, input_bias) || !with_bias(of_h, state, u, recurrent_bias) || state != h || !fits(w, u, 3))
    return std::nullopt;
  cell.units = u->shape[0];
  const std::vector<int64_t> order = {0, 1, 2};
  cell.weight = gates_first(w, order);
  cell.recurrence = gates_first(u, order);
  cell.bias = joined_bias(input_bias, recurrent_bias, order, cell.units);
  return cell;
}

}  // namespace

std::optional<RecurrentCell> find_cell(const Graph& body, const std::vector<ValueId>& states, const std::vector<ValueId>& next) {
  if (states.size() == 1 && next.size() == 1) return find_gru(body, states[0], next[0]);
  if (states.size() != 2 || next.size() != 2) return std::nullopt;
  return find_lstm(body, states[0], states[1], next[0], next[1]);
}

}  // namespace serin::formats::tf
