// recurrent_layers.cc: LSTM, GRU, SimpleRNN, and both directions of one.
//
// Keras stores a kernel as [features, gates * units] with the gates of an LSTM in the order input, forget, cell, output. The canonical operators want
// [gates * units, features] in the order input, output, forget, cell.
//
// The operators know lengths and no masks, so the steps that count are computed without the others (counted_steps.h).

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/formats/keras/counted_steps.h"
#include "runtime/formats/keras/layer.h"

namespace serin::formats::keras {

namespace {

struct Kind {
  Op op;
  size_t gates, states;
  std::array<size_t, 4> order;  ///< gate of Keras for each gate of the operator
};

constexpr Kind kLstm{Op::kLSTM, 4, 2, {0, 3, 1, 2}}, kGru{Op::kGRU, 3, 1, {0, 1, 2, 0}}, kSimple{Op::kRNN, 1, 1, {0, 0, 0, 0}};

const Kind* kind_of(std::string_view class_name) {
  return class_name == "LSTM" ? &kLstm : class_name == "GRU" ? &kGru : class_name == "SimpleRNN" ? &kSimple : nullptr;
}

/// The weights of one direction.
struct Cell {
  graph::ConstantPtr kernel, recurrent, bias;  ///< bias: null, [gates * units] or [2, gates * units]
};

/// Rows [rows, gates * units] of one or two directions as [directions, gates * units, rows].
graph::ConstantPtr turned(const Kind& kind, int64_t units, const std::vector<graph::ConstantPtr>& matrices) {
  const int64_t rows = matrices[0]->shape[0], columns = static_cast<int64_t>(kind.gates) * units;
  return graph::make_constant(
      DType::kFloat32, Shape{static_cast<int64_t>(matrices.size()), columns, rows},
      [kind, units, rows, columns, matrices](std::span<std::byte> bytes) -> Status {
        auto* to = reinterpret_cast<float*>(bytes.data());
        for (const auto& matrix : matrices) {
          const auto from = matrix->span<float>();
          for (size_t gate = 0; gate < kind.gates; ++gate)
            for (int64_t unit = 0; unit < units; ++unit)
              for (int64_t row = 0; row < rows; ++row)
                *to++ = from[static_cast<size_t>(row * columns + static_cast<int64_t>(kind.order[gate]) * units + unit)];
        }
        return {};
      });
}

/// [directions, 2 * gates * units]: for the inputs, then for the state.
graph::ConstantPtr biases(const Kind& kind, int64_t units, const std::vector<Cell>& cells) {
  const auto columns = kind.gates * static_cast<size_t>(units);
  std::vector<float> values;
  for (const Cell& cell : cells) {
    std::vector<float> both(2 * columns, 0.0F);
    if (cell.bias) {
      const auto from = cell.bias->span<float>();
      for (size_t part = 0; part < (cell.bias->shape.rank() == 2 ? 2U : 1U); ++part)
        for (size_t gate = 0; gate < kind.gates; ++gate)
          std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(part * columns + kind.order[gate] * static_cast<size_t>(units)), units,
                      both.begin() + static_cast<std::ptrdiff_t>(part * columns + gate * static_cast<size_t>(units)));
    }
    values.insert(values.end(), both.begin(), both.end());
  }
  return graph::make_constant(DType::kFloat32, Shape{static_cast<int64_t>(cells.size()), static_cast<int64_t>(2 * columns)}, values.data());
}

/// The name of an activation as the operators have it; empty: they do not.
std::string_view gate_function(Json activation) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"tanh", "Tanh"}, {"sigmoid", "Sigmoid"}, {"relu", "Relu"}, {"softsign", "Softsign"}, {"softplus", "Softplus"}};
  const std::string name = activation.text_or("");
  for (const auto& [own, other] : kNames)
    if (own == name) return other;
  return {};
}

/// The settings of one recurrent layer, which may be a direction of another.
class Recurrent {
 public:
  Recurrent(Layer& layer, const Kind& kind, Json config)
      : layer_(layer), kind_(kind), config_(config), units_(config["units"].integer().value_or(0)) {}

  int64_t units() const { return units_; }
  bool flag(std::string_view key, bool fallback = false) const { return config_[key].boolean().value_or(fallback); }

  bool check() {
    if (units_ < 1 || units_ > (1 << 24)) return layer_.corrupt("'units' is no size"), false;
    if (flag("stateful")) return layer_.unsupported("stateful: a state between requests"), false;
    if (layer_.rank(0) != 3) return layer_.corrupt("its input is not [batch, steps, features]"), false;
    return true;
  }

  Cell cell(const std::string& folder) {
    const int64_t columns = static_cast<int64_t>(kind_.gates) * units_, features = layer_.size(0, 2);
    Cell cell{layer_.constant_weight(0, {features, columns}, "the kernel", folder),
              layer_.constant_weight(1, {units_, columns}, "the recurrent kernel", folder), nullptr};
    const bool apart = kind_.op == Op::kGRU && flag("reset_after", true);
    if (flag("use_bias", true))
      cell.bias =
          apart ? layer_.constant_weight(2, {2, columns}, "the bias", folder) : layer_.constant_weight(2, {columns}, "the bias", folder);
    for (const auto& each : {cell.kernel, cell.recurrent, cell.bias})
      if (each && each->dtype != DType::kFloat32) layer_.corrupt("weights that are no numbers of floating point");
    return cell;
  }

  /// Activations in the order of the operator; none if they are its own.
  std::vector<std::string> activations() {
    const std::string_view inside = gate_function(config_["activation"]),
                           gates = kind_.op == Op::kRNN ? "Tanh" : gate_function(config_["recurrent_activation"]);
    if (inside.empty() || gates.empty()) layer_.unsupported("these activations");
    if (kind_.op == Op::kRNN) return {std::string(inside)};
    if (kind_.op == Op::kGRU) return {std::string(gates), std::string(inside)};
    return {std::string(gates), std::string(inside), std::string(inside)};
  }

 private:
  Layer& layer_;
  const Kind& kind_;
  const Json config_;
  const int64_t units_;
};

/// The inputs that are first states, of all directions: those behind the sequence that are no mask.
List states_of(Layer& layer) {
  const auto masks = layer.named("mask");
  List states;
  for (size_t i = 1; i < layer.inputs(); ++i)
    if (std::ranges::find(masks, i) == masks.end()) states.push_back(static_cast<int64_t>(i));
  return states;
}

/// The steps that count. Keras passes on the mask of the only tensor of a call: not where states are given, too.
std::optional<CountedSteps> counted_steps(Layer& layer) {
  const auto given = layer.named("mask");
  if (given.empty() && (!layer.input(0).mask || !states_of(layer).empty())) return std::nullopt;
  const ValuePtr mask = given.empty() ? layer.input(0).mask : layer.value(given[0]);
  if (layer.scope().rank(*mask) != 2) return layer.unsupported("a mask that is not [batch, steps]"), std::nullopt;
  return CountedSteps(layer.b(), layer.b().cast(layer.scope().plain(*mask), DType::kBool));
}

/// Steps that did not count in the input do not count in the output.
void pass_mask_on(Layer& layer) {
  const auto given = layer.named("mask");
  layer.set_mask(given.empty() ? layer.input(0).mask : layer.value(given[0]));
}

/// All outputs [batch, steps, directions, units], then the last states [batch, directions, units]. `direction`: as the operators name it.
/// With `steps`, the outputs are those of the steps that count, and zeros.
std::vector<ValueId> run_cells(Layer& layer, const Kind& kind, Recurrent& first, const std::vector<Cell>& cells,
                               const std::string& direction, std::optional<CountedSteps>& steps) {
  graph::Builder& b = layer.b();
  std::vector<std::string> activations = first.activations();
  if (layer.failed()) return {};
  if (cells.size() == 2) {
    const std::vector<std::string> again = activations;
    activations.insert(activations.end(), again.begin(), again.end());
  }
  std::vector<graph::ConstantPtr> kernels, recurrents;
  for (const Cell& cell : cells) {
    kernels.push_back(cell.kernel);
    recurrents.push_back(cell.recurrent);
  }
  const ValueId x = layer.scope().plain(*layer.as_float(layer.value(0)));
  std::vector<ValueId> operands = {steps ? steps->to_front(x) : x, b.constant(turned(kind, first.units(), kernels)),
                                   b.constant(turned(kind, first.units(), recurrents)), b.constant(biases(kind, first.units(), cells))};
  const List given = states_of(layer);
  if (steps || !given.empty()) operands.push_back(steps ? steps->lengths() : kNone);
  if (!given.empty()) {
    if (given.size() != kind.states * cells.size())
      return layer.unsupported(fmt::format("{} first states", given.size())), std::vector<ValueId>();
    for (size_t state = 0; state < kind.states; ++state) {
      std::vector<ValueId> parts;
      parts.reserve(cells.size());
      for (size_t i = 0; i < cells.size(); ++i)
        parts.push_back(b.unsqueeze(layer.plain(static_cast<size_t>(given[i * kind.states + state])), {1}));
      operands.push_back(parts.size() == 1 ? parts[0] : b.add(Op::kConcat, parts, {{"axis", int64_t{1}}}));
    }
  }
  graph::Attributes attributes{
      {"hidden_size", first.units()}, {"direction", direction}, {"layout", int64_t{1}}, {"activations", activations}};
  if (kind.op == Op::kGRU) attributes.emplace("linear_before_reset", int64_t{first.flag("reset_after", true)});
  return b.add_with_results(kind.op, 1 + kind.states, operands, std::move(attributes));
}

ValueId backwards(graph::Builder& b, ValueId steps) {
  return b.add(Op::kSlice, {steps}, {{"starts", List{-1}}, {"ends", List{INT64_MIN + 1}}, {"axes", List{1}}, {"steps", List{-1}}});
}

void import_recurrent(Layer& layer) {
  const Kind& kind = *kind_of(layer.class_name());
  graph::Builder& b = layer.b();
  Recurrent recurrent(layer, kind, layer.config());
  if (!recurrent.check()) return;
  const bool reversed = recurrent.flag("go_backwards");
  const std::vector<Cell> cells = {recurrent.cell("cell/")};
  if (layer.failed()) return;
  auto counted = counted_steps(layer);
  const auto results = run_cells(layer, kind, recurrent, cells, reversed ? "reverse" : "forward", counted);
  if (layer.failed() || results.empty()) return;
  const bool zeros = recurrent.flag("zero_output_for_mask");
  if (recurrent.flag("return_sequences")) {
    ValueId steps = b.squeeze(results[0], {2});
    if (counted) steps = counted->spread(steps, reversed);
    if (counted && zeros) steps = counted->zeroed(steps);
    pass_mask_on(layer);
    layer.out(reversed ? backwards(b, steps) : steps);
  } else {
    ValueId last = b.squeeze(results[1], {1});
    if (counted) last = zeros ? counted->zeroed_by_end(last, reversed) : counted->zeroed_if_empty(last);
    layer.out(last);
  }
  layer.set_mask(nullptr);
  if (!recurrent.flag("return_state")) return;
  for (size_t state = 0; state < kind.states; ++state) layer.out(b.squeeze(results[1 + state], {1}));
}

void import_bidirectional(Layer& layer) {
  graph::Builder& b = layer.b();
  const Json inner = layer.setting("layer"), other = layer.setting("backward_layer");
  const Kind* const kind = kind_of(inner["class_name"].text_or(""));
  if (!kind) return layer.unsupported(fmt::format("a layer '{}' in it", inner["class_name"].text_or("?")));
  const bool own = other && !other.is_null();
  if (own && other["class_name"].text_or("") != inner["class_name"].text_or("")) return layer.unsupported("directions of two classes");
  Recurrent forward(layer, *kind, inner["config"]), backward(layer, *kind, own ? other["config"] : inner["config"]);
  if (!forward.check() || !backward.check()) return;
  if (forward.flag("go_backwards") || (own && !backward.flag("go_backwards")))
    return layer.unsupported("directions that are not forward and backward");
  if (forward.units() != backward.units() || forward.activations() != backward.activations() ||
      forward.flag("reset_after", true) != backward.flag("reset_after", true) ||
      forward.flag("use_bias", true) != backward.flag("use_bias", true))
    return layer.unsupported("directions of different settings");
  if (forward.flag("return_state")) return layer.unsupported("return_state");
  const std::vector<Cell> cells = {forward.cell("forward_layer/cell/"), backward.cell("backward_layer/cell/")};
  if (layer.failed()) return;
  auto counted = counted_steps(layer);
  const auto results = run_cells(layer, *kind, forward, cells, "bidirectional", counted);
  if (layer.failed() || results.empty()) return;
  const bool sequences = forward.flag("return_sequences");
  ValueId both = sequences ? results[0] : results[1];  // [batch, (steps,) directions, units]
  // Keras sets zero_output_for_mask here where sequences are returned, and clears it otherwise.
  if (counted) both = sequences ? counted->zeroed(counted->spread(both, false)) : counted->zeroed_if_empty(both);
  if (sequences) pass_mask_on(layer);
  const int64_t axis = sequences ? 2 : 1, units = forward.units();
  const std::string mode = layer.is_set("merge_mode") ? layer.text("merge_mode") : "";
  if (mode == "concat") return layer.out(b.reshape(both, sequences ? List{0, 0, 2 * units} : List{0, 2 * units}));
  const auto reduced = [&](Op op) { return b.add(op, {both}, {{"axes", List{axis}}, {"keepdims", int64_t{0}}}); };
  if (mode == "sum") return layer.out(reduced(Op::kReduceSum));
  if (mode == "ave") return layer.out(reduced(Op::kReduceMean));
  if (mode == "mul") return layer.out(reduced(Op::kReduceProd));
  if (!mode.empty()) return layer.unsupported(fmt::format("merge_mode '{}'", mode));
  for (const int64_t direction : {0, 1}) layer.out(b.squeeze(b.slice(both, axis, direction, direction + 1), {axis}));
}

/// The same layer for each step. Its steps join the batch meanwhile.
void import_time_distributed(Layer& layer) {
  graph::Builder& b = layer.b();
  const Json inner = layer.setting("layer");
  const std::string class_name = inner["class_name"].text_or("?");
  const LayerRow* const row = find_layer(inner["module"].text_or(""), class_name);
  const auto dims = layer.dims(0);
  if (!row || kind_of(class_name)) return layer.unsupported(fmt::format("a layer '{}' in it", class_name));
  if (!dims || dims->size() < 3) return layer.unsupported("an input without steps");
  const bool reads_mask = class_name == "GlobalAveragePooling1D" || class_name == "Softmax";
  if (reads_mask && layer.input(0).mask) return layer.unsupported(fmt::format("a mask before a layer '{}' in it", class_name));
  List joined = {-1};
  for (size_t axis = 2; axis < dims->size(); ++axis) joined.push_back(layer.size(0, static_cast<int64_t>(axis)));
  const ValueId x = layer.plain(0), steps = b.slice(b.add(Op::kShape, {x}), 0, 1, 2);
  Layer each(layer.shared(), class_name, inner["config"], layer.folder() + "layer/", {{tf::plain_value(b.reshape(x, joined))}}, {});
  row->import(each);
  const std::vector<Tensor> results = each.take_outputs();
  if (layer.failed() || results.size() != 1) return;
  const ValueId y = layer.scope().plain(*results[0].value);
  const auto made = b.dims(y);
  if (!made || made->empty()) return layer.unsupported("a result of unknown shape");
  List behind;
  for (size_t axis = 1; axis < made->size(); ++axis) {
    const auto size = (*made)[axis].value();
    if (!size) return layer.unsupported("a result of unknown shape");
    behind.push_back(*size);
  }
  layer.keep_mask();
  const ValueId batch = b.slice(b.add(Op::kShape, {x}), 0, 0, 1);
  std::vector<ValueId> shape = {batch, steps};
  if (!behind.empty()) shape.push_back(b.integers(behind));
  layer.out(b.add(Op::kReshape, {y, b.add(Op::kConcat, shape, {{"axis", int64_t{0}}})}));
}

constexpr LayerRow kRecurrent[] = {
    {"Bidirectional", import_bidirectional},      {"GRU", import_recurrent}, {"LSTM", import_recurrent}, {"SimpleRNN", import_recurrent},
    {"TimeDistributed", import_time_distributed},
};

}  // namespace

std::span<const LayerRow> recurrent_layers() { return kRecurrent; }

}  // namespace serin::formats::keras
