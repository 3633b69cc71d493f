// prove_paddable: what happens to elements that nobody sent?
//
// Every value is one of three things, found in one walk from the inputs, as in prove_batchable:
//
//   same    does not know the dimension: weights, and what is computed from them
//   size    computed from its size: Shape on its way into a Reshape. It is the padded size, so it may shape values and never be one
//   along   has the dimension on one axis or two (the scores of attention). What lies within the true size on all of them is right. Of what lies behind it on
//           one of them the proof knows that it is
//             a number   of which two are kept: what it is behind the end, where the inputs are 0, and what it would be where they are 1
//             finite     something that the model computes for zeros, as finite as any other of its values
//             anything   the rest: it may be NaN, and even a product with 0 does not get rid of it
//
// The rules (paddable_rules.cc, paddable_movement.cc, paddable_sums.cc) say how an operator moves the axis and what it makes of the tail.

#include "runtime/graph/proofs/paddable.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/graph/proofs/batchable.h"
#include "runtime/graph/proofs/paddable_interval.h"
#include "runtime/graph/proofs/paddable_rule.h"

namespace serin::graph {
namespace {

class PaddingProof {
 public:
  PaddingProof(Graph graph, std::string symbol) : graph_(std::move(graph)), symbol_(std::move(symbol)) {}

  Result<std::vector<size_t>> run() {
    SERIN_TRY(values_, infer_shapes_and_values(graph_));
    states_.resize(graph_.value_capacity());
    SERIN_CHECK(start());
    SERIN_TRY(const auto order, graph_.topological_order());
    for (const NodeId id : order) SERIN_CHECK(step(graph_.node(id)));
    for (const ValueId id : graph_.outputs()) {
      const PadState& state = states_[static_cast<size_t>(id)];
      if (state.is_size()) return refuse("output '{}' is computed from the length", graph_.value(id).name);
      for (const auto& [axis, tail] : state.axes) {
        if (!((*graph_.value(id).type.shape)[axis] == Dim::symbol(symbol_)))
          return refuse("output '{}' has another length than the inputs", graph_.value(id).name);
      }
    }
    std::vector<size_t> masks;
    for (size_t i = 0; i < kMostPaddedInputs; ++i)
      if (masks_[i]) masks.push_back(i);
    for (const size_t mask : masks) {  // who asks whether a request has an element that counts looks at rows
      const Value& input = graph_.value(graph_.inputs()[mask]);
      if (!(input.type.shape->back() == Dim::symbol(symbol_)))
        return refuse("input '{}' says what counts along another axis than its last", input.name);
    }
    return masks;
  }

 private:
  template <class... Args>
  static Error refuse(fmt::format_string<Args...> format, Args&&... args) {
    return {Code::kFailedPrecondition, fmt::format(format, std::forward<Args>(args)...)};
  }

  Status start() {
    if (graph_.inputs().size() > kMostPaddedInputs) return refuse("the model has more than {} inputs", kMostPaddedInputs);
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const Value& input = graph_.value(graph_.inputs()[i]);
      if (!input.type.shape) return refuse("input '{}' has any number of dimensions", input.name);
      std::vector<std::pair<size_t, Tail>> axes;
      for (size_t axis = 0; axis < input.type.shape->size(); ++axis) {
        const Dim& dim = (*input.type.shape)[axis];
        if (!mentions(dim, symbol_)) continue;
        if (!(dim == Dim::symbol(symbol_))) return refuse("input '{}' has a length of {}", input.name, dim.str());
        Tail zeros{Tail::Kind::kNumber, 0, 1, {}};
        zeros.from.inputs.set(i);
        for (size_t other = 0; other < input.type.shape->size(); ++other)
          if (other != axis && !((*input.type.shape)[other] == Dim(1))) zeros.from.rows->push_back(input.type.shape->size() - 1 - other);
        axes.emplace_back(axis, zeros);
      }
      if (axes.size() > 1) return refuse("input '{}' has '{}' on two axes", input.name, symbol_);
      states_[static_cast<size_t>(graph_.inputs()[i])] = PadState::along(std::move(axes));
    }
    return {};
  }

  Status step(const Node& node) {
    const auto is_same = [&](ValueId id) { return id == kNone || states_[static_cast<size_t>(id)].is_same(); };
    const PadFacts facts{graph_, states_, values_, symbol_, magnitudes_};
    if (std::ranges::all_of(node.inputs, is_same)) {
      if (node.outputs.size() == 1) states_[static_cast<size_t>(node.outputs[0])].interval = interval_of(facts, node);
      return {};
    }
    for (const auto& list : {node.inputs, node.outputs}) {
      for (const ValueId id : list)
        if (id != kNone && !graph_.value(id).type.shape) return refuse("node '{}' ({}): a shape is not known", node.name, op_name(node.op));
    }
    auto state = PadRule(facts, node, masks_).run();
    if (!state) return refuse("node '{}' ({}) {}", node.name, op_name(node.op), state.error().message);
    if (state->is_along()) state->interval = interval_of(facts, node);
    for (const ValueId id : node.outputs)
      if (id != kNone) SERIN_CHECK(settle(node, id, *state));
    return {};
  }

  /// Stores what a rule found, where the shape agrees.
  Status settle(const Node& node, ValueId id, PadState state) {
    const auto& elements = values_[static_cast<size_t>(id)];
    if (state.is_size() && elements && !mentions(*elements, symbol_)) state = PadState{};  // the other sizes of a shape
    const Dims& dims = *graph_.value(id).type.shape;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      if (mentions(dims[axis], symbol_) == (state.tail(axis) != nullptr)) continue;
      return refuse("node '{}' ({}) has shape {}, in which '{}' is not kept apart", node.name, op_name(node.op), print(dims), symbol_);
    }
    states_[static_cast<size_t>(id)] = std::move(state);
    return {};
  }

  Graph graph_;
  const std::string symbol_;
  ShapeValues values_;
  std::vector<PadState> states_;
  Magnitudes magnitudes_{graph_};
  PaddedInputs masks_;
};

}  // namespace

Paddable prove_paddable(const Graph& graph, const std::string& symbol) {
  try {
    auto masks = PaddingProof(graph, symbol).run();
    if (!masks) return {false, masks.error().message, {}};
    return {true, "", std::move(*masks)};
  } catch (const LostConstant& lost) {  // weights are read for it
    return {false, lost.error().message, {}};
  }
}

}  // namespace serin::graph
