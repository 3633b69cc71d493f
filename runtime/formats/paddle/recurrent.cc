// recurrent.cc: the operator rnn, with all layers of an LSTM, GRU or simple network in it.
//
// Paddle has the gates of an LSTM in the order input, forget, cell, output, and those of a GRU as reset, update, new; a Graph has input, output,
// forget, cell and update, reset, hidden. Weights are a list: for each layer and direction w_ih and w_hh, then for each b_ih and b_hh.

#include <algorithm>
#include <cstring>

#include "runtime/formats/paddle/operators.h"

namespace serin::formats::paddle {
namespace {

struct Mode {
  std::string_view name;
  Op op;
  std::vector<size_t> gates;  ///< where each gate of the Graph's order is in Paddle's
  const char* activation;
};

const Mode* find_mode(std::string_view name) {
  static const Mode modes[] = {{"LSTM", Op::kLSTM, {0, 3, 1, 2}, ""},
                               {"GRU", Op::kGRU, {1, 0, 2}, ""},
                               {"RNN_TANH", Op::kRNN, {0}, "Tanh"},
                               {"RNN_RELU", Op::kRNN, {0}, "Relu"}};
  const auto found = std::ranges::find(modes, name, &Mode::name);
  return found == std::end(modes) ? nullptr : found;
}

/// The parts one after another, each with its gates in the Graph's order. A recipe: the weights stay where they are.
graph::ConstantPtr stacked(const std::vector<graph::ConstantPtr>& parts, const std::vector<size_t>& gates, const Shape& shape) {
  return graph::make_constant(DType::kFloat32, shape, [parts, gates](std::span<std::byte> to) -> Status {
    std::byte* at = to.data();
    for (const graph::ConstantPtr& part : parts) {
      const auto from = part->data();
      const size_t gate = part->bytes() / gates.size();
      for (const size_t place : gates) at = std::copy_n(from.get() + place * gate, gate, at);
    }
    return {};
  });
}

/// Whether a state is all zeros, as it is where the caller gives none.
bool is_zero(const Node& node, ValueId x) {
  const graph::Graph& graph = node.b.graph();
  const graph::NodeId maker = graph.producer(x);
  graph::ConstantPtr value = graph.constant(x);
  if (graph.is(maker, Op::kConstantOfShape)) value = graph.node(maker).constant("value");
  if (!value || value->dtype != DType::kFloat32 || value->bytes() > (size_t{1} << 20)) return false;
  const auto elements = value->span<float>();
  return std::ranges::all_of(elements, [](float each) { return each == 0; });
}

struct Layers {
  const Mode* mode;
  int64_t hidden, layers, directions;
  std::vector<graph::ConstantPtr> weights;  ///< as in the list
};

/// The weights of one layer, for `W`, `R` and `B` of the Graph's operator.
struct Weights {
  graph::ConstantPtr input, recurrent, bias;
};

std::optional<Weights> weights_of(Node& node, const Layers& all, int64_t layer) {
  std::vector<graph::ConstantPtr> input, recurrent, bias;
  const int64_t rows = all.hidden * static_cast<int64_t>(all.mode->gates.size());
  const auto at = [&](int64_t place) { return all.weights[static_cast<size_t>(place)]; };
  int64_t width = 0;
  for (int64_t d = 0; d < all.directions; ++d) {
    const int64_t place = 2 * (layer * all.directions + d), behind = 2 * all.layers * all.directions + place;
    input.push_back(at(place)), recurrent.push_back(at(place + 1));
    bias.push_back(at(behind)), bias.push_back(at(behind + 1));
    width = input[0]->shape.rank() == 2 ? input[0]->shape[1] : 0;
    const bool fits = input.back()->shape == Shape{rows, width} && recurrent.back()->shape == Shape{rows, all.hidden} &&
                      at(behind)->shape == Shape{rows} && at(behind + 1)->shape == Shape{rows};
    if (!fits) {
      node.corrupt("weights that do not fit its hidden size");
      return std::nullopt;
    }
  }
  const auto& gates = all.mode->gates;
  return Weights{stacked(input, gates, Shape{all.directions, rows, width}),
                 stacked(recurrent, gates, Shape{all.directions, rows, all.hidden}), stacked(bias, gates, Shape{all.directions, 2 * rows})};
}

std::optional<Layers> layers_of(Node& node) {
  Layers all{find_mode(node.text("mode", "RNN_TANH")),
             node.integer("hidden_size", 0),
             node.integer("num_layers", 1),
             node.flag("is_bidirec") ? 2 : 1,
             {}};
  for (const ValueId weight : node.all("WeightList")) all.weights.push_back(node.b.graph().constant(weight));
  const bool counted = all.mode && all.hidden > 0 && all.layers > 0 && all.layers < 1000 && all.hidden < (int64_t{1} << 24) &&
                       all.weights.size() == static_cast<size_t>(4 * all.layers * all.directions);
  if (!counted) {
    node.corrupt("a mode, a hidden size or a number of weights that do not fit each other");
    return std::nullopt;
  }
  if (!std::ranges::all_of(all.weights, [](const graph::ConstantPtr& weight) { return weight && weight->dtype == DType::kFloat32; })) {
    node.refuse("rnn whose weights are not known f32 numbers");
    return std::nullopt;
  }
  return all;
}

void import_rnn(Node& node, Op /*op*/) {
  ValueId x = node.in("Input");
  const auto all = layers_of(node);
  if (!all) return;
  const bool lstm = all->mode->op == Op::kLSTM;
  const std::vector<ValueId>& states = node.all("PreState");
  const ValueId lengths = node.maybe("SequenceLength");
  std::vector<ValueId> last[2];
  for (int64_t layer = 0; layer < all->layers; ++layer) {
    const auto weights = weights_of(node, *all, layer);
    if (!weights) return;
    std::vector<ValueId> operands{x, node.b.constant(weights->input), node.b.constant(weights->recurrent), node.b.constant(weights->bias),
                                  lengths == kNone ? kNone : node.b.cast(lengths, DType::kInt32)};
    for (const ValueId state : states)
      operands.push_back(is_zero(node, state) ? kNone : node.b.slice(state, 0, layer * all->directions, (layer + 1) * all->directions));
    Attributes attributes{{"hidden_size", all->hidden}, {"direction", std::string(all->directions == 2 ? "bidirectional" : "forward")}};
    if (all->mode->op == Op::kGRU) attributes.emplace("linear_before_reset", int64_t{1});
    if (all->mode->op == Op::kRNN)
      attributes.emplace("activations", std::vector<std::string>(static_cast<size_t>(all->directions), all->mode->activation));
    const auto results = node.b.add_with_results(all->mode->op, lstm ? 3 : 2, std::move(operands), std::move(attributes));
    // [length, directions, batch, hidden] -> [length, batch, directions * hidden]
    x = all->directions == 1 ? node.b.squeeze(results[0], {1})
                             : node.b.reshape(node.b.transpose(results[0], {0, 2, 1, 3}), {0, 0, 2 * all->hidden});
    for (size_t i = 1; i < results.size(); ++i) last[i - 1].push_back(results[i]);
  }
  node.out("Out", x);
  std::vector<ValueId> ends;
  for (const std::vector<ValueId>& each : last)
    if (!each.empty()) ends.push_back(node.concat(each, 0));
  node.outs("State", ends);
}

constexpr OperatorRow kRecurrentRows[] = {
    {"rnn", "rnn", "Input PreState WeightList SequenceLength", "Out DropoutState State Reserve", import_rnn},
};

}  // namespace

std::span<const OperatorRow> recurrent_operators() { return kRecurrentRows; }

}  // namespace serin::formats::paddle
