// prove_batchable: are the rows of a batch independent of each other?
//
// Every value is one of three things, found in one walk from the inputs:
//
//   same    the same whatever the batch holds and however large it is: weights, positions, masks made from constants
//   size    computed from the size of the batch, not from its contents: Shape(x) on its way into a Reshape
//   rows    has the batch on one axis, of size batch * block: item i is what lies at [i * block, (i + 1) * block) of that axis, and depends on
//           item i of the inputs only. `block` is 1 until a Reshape merges the batch with the axis behind it: [batch, seq, 64] -> [batch * seq, 64]
//
// The rules (batchable_rules.cc) say how the axis moves through an operator, and refuse what would mix items. What they do not know they refuse: a proof that fails
// costs speed, a wrong one would give a client somebody else's answer. After each node its shape is checked, too: the batch symbol must
// occur on the tracked axis, as batch * block, and nowhere else.

#include "runtime/graph/proofs/batchable.h"

#include <fmt/format.h>

#include <algorithm>

namespace serin::graph {

bool mentions(const Dim& dim, const std::string& symbol) {
  const auto symbols = dim.symbols();
  return std::ranges::find(symbols, symbol) != symbols.end();
}

bool mentions(const Dims& dims, const std::string& symbol) {
  return std::ranges::any_of(dims, [&](const Dim& dim) { return mentions(dim, symbol); });
}

namespace {

class BatchProof {
 public:
  explicit BatchProof(Graph graph) : graph_(std::move(graph)) {}

  Result<std::string> run() {
    SERIN_TRY(values_, infer_shapes_and_values(graph_));
    states_.resize(graph_.value_capacity());
    SERIN_CHECK(start());
    SERIN_TRY(const auto order, graph_.topological_order());
    for (const NodeId id : order) SERIN_CHECK(step(id));
    SERIN_CHECK(check_outputs());
    return symbol_;
  }

 private:
  template <class... Args>
  static Error refuse(fmt::format_string<Args...> format, Args&&... args) {
    return {Code::kFailedPrecondition, fmt::format(format, std::forward<Args>(args)...)};
  }

  Status start() {
    if (graph_.inputs().empty()) return refuse("the model has no inputs");
    for (const ValueId id : graph_.inputs()) {
      const Value& input = graph_.value(id);
      const auto symbol = input.type.shape && !input.type.shape->empty() ? input.type.shape->front().symbol_name() : std::nullopt;
      if (!symbol) return refuse("input '{}' has no batch axis: its shape is {}", input.name, print(input.type));
      if (symbol_.empty()) symbol_ = *symbol;
      if (*symbol != symbol_) return refuse("input '{}' has '{}' on its first axis, another input has '{}'", input.name, *symbol, symbol_);
      if (mentions(Dims(input.type.shape->begin() + 1, input.type.shape->end()), symbol_))
        return refuse("input '{}' has '{}' on more than one axis", input.name, symbol_);
      states_[static_cast<size_t>(id)] = BatchState::rows(0, 1);
    }
    return {};
  }

  Status step(NodeId id) {
    const Node& node = graph_.node(id);
    const auto of = [&](ValueId value) { return value == kNone ? BatchState{} : states_[static_cast<size_t>(value)]; };
    const bool all_same = std::ranges::all_of(node.inputs, [&](ValueId value) { return of(value).is_same(); });
    if (all_same) return {};
    for (const auto& inputs_and_outputs : {node.inputs, node.outputs}) {
      for (const ValueId value : inputs_and_outputs) {
        if (value != kNone && !graph_.value(value).type.shape)
          return refuse("node '{}' ({}): the shape of '{}' is not known", node.name, op_name(node.op), graph_.value(value).name);
      }
    }
    const bool filled_up = std::ranges::any_of(node.inputs, [&](ValueId value) { return of(value).is_filled_up(); });
    if (filled_up && node.op != Op::kTfIdfVectorizer && !drops_middle_axis(node))
      return refuse("node '{}' ({}) reads rows that are as long as the longest text of a batch", node.name, op_name(node.op));
    const BatchFacts facts{graph_, states_, values_, symbol_};
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNone) continue;
      auto state = batch_rule(facts, node, i);
      if (!state) return refuse("node '{}' ({}) {}", node.name, op_name(node.op), state.error().message);
      SERIN_CHECK(settle(node, node.outputs[i], *state));
    }
    return {};
  }

  /// [n, 1, words] -> [n, words], which is all that stands between Tokenizer and TfIdfVectorizer.
  bool drops_middle_axis(const Node& node) const {
    if (node.op != Op::kFlatten && node.op != Op::kReshape && node.op != Op::kSqueeze) return false;
    const auto &from = graph_.value(node.inputs[0]).type.shape, &to = graph_.value(node.outputs[0]).type.shape;
    return from && to && from->size() == 3 && (*from)[1] == Dim(1) && *to == Dims{(*from)[0], (*from)[2]};
  }

  /// Stores what a rule found, where the shape agrees.
  Status settle(const Node& node, ValueId id, BatchState state) {
    const auto& elements = values_[static_cast<size_t>(id)];
    if (state.is_size() && elements && !mentions(*elements, symbol_))
      state = BatchState{};  // the other sizes of the shape: known, or another symbol
    const Dims& dims = *graph_.value(id).type.shape;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const bool tracked = state.is_rows() && state.axis == static_cast<int64_t>(axis);
      const bool agrees = tracked ? dims[axis] == Dim::symbol(symbol_) * state.block : !mentions(dims[axis], symbol_);
      if (!agrees)
        return refuse("node '{}' ({}) has shape {}, in which the batch axis is not kept apart", node.name, op_name(node.op), print(dims));
    }
    states_[static_cast<size_t>(id)] = std::move(state);
    return {};
  }

  Status check_outputs() const {
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId id = graph_.outputs()[i];
      const BatchState& state = states_[static_cast<size_t>(id)];
      const std::string& name = i < graph_.output_names().size() ? graph_.output_names()[i] : graph_.value(id).name;
      if (!state.is_rows()) return refuse("output '{}' has no batch axis", name);
      if (state.is_filled_up()) return refuse("output '{}' is as long as the longest text of a batch", name);
      if (state.axis != 0 || !(state.block == Dim(1)))
        return refuse("output '{}' has shape {}, the batch is not its first axis", name, print(*graph_.value(id).type.shape));
    }
    return {};
  }

  Graph graph_;
  ShapeValues values_;
  std::vector<BatchState> states_;
  std::string symbol_;
};

}  // namespace

Batchable prove_batchable(const Graph& graph) {
  const auto symbol = BatchProof(graph).run();
  if (!symbol) return {false, symbol.error().message, ""};
  return {true, "", *symbol};
}

}  // namespace serin::graph
