// paddable_rules.cc: what each operator makes of the elements behind the end, for prove_paddable.
//
// A sum over the dimension is right where the tail is 0, a product where one tail is 0 and the other finite, a softmax where the tail is so low that its share is
// exactly 0 whatever was added to it: -3e38 is, and -10000 where the model's scores cannot be as large (paddable_mask.h). Operators that are not here are refused: a
// proof that fails costs a plan for each length, a wrong one would give wrong answers.

#include "runtime/graph/paddable_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/graph/batchable.h"
#include "runtime/graph/paddable_mask.h"
#include "runtime/graph/passes/match.h"

namespace serin::graph {
namespace {

using State = PadState;

class Rule {
 public:
  Rule(const PadFacts& facts, const Node& node, PaddedInputs& masks)
      : facts_(facts),
        graph_(facts.graph),
        node_(node),
        states_(facts.states),
        values_(facts.values),
        symbol_(facts.symbol),
        masks_(masks) {}

  Result<State> run() {
    const Op op = node_.op;
    if (op == Op::kShape || op == Op::kSize) return State::size();
    if (op == Op::kConstantOfShape || op == Op::kExpand) return expand();
    if (op == Op::kRange) return state(0).is_same() && state(2).is_same() ? Result<State>(State::along({{0, Tail{}}})) : unknown();
    const bool sizes =
        std::ranges::any_of(node_.inputs, [&](ValueId id) { return id != kNone && states_[static_cast<size_t>(id)].is_size(); });
    if (sizes && op != Op::kReshape && op != Op::kSlice) return of_sizes();
    switch (op) {
      case Op::kReshape:
      case Op::kFlatten:
      case Op::kSqueeze:
      case Op::kUnsqueeze: return reshape();
      case Op::kTranspose: return transpose();
      case Op::kGather: return gather();
      case Op::kSlice: return slice();
      case Op::kSplit:
      case Op::kConcat: return other_axis();
      case Op::kMatMul:
      case Op::kFusedMatMul: return product();
      case Op::kAttention: return attention();
      case Op::kSoftmax: return softmax();
      case Op::kLayerNormalization:
      case Op::kRMSNormalization: return normalise();
      case Op::kCumSum: return cumulate();
      case Op::kReduceSum:
      case Op::kReduceL1:
      case Op::kReduceL2:
      case Op::kReduceSumSquare:
      case Op::kReduceMax:
      case Op::kReduceMean:
      case Op::kReduceMin: return reduce();
      case Op::kWhere: return elementwise();
      default: return is_elementwise(op) ? elementwise() : unknown();
    }
  }

 private:
  template <class... Args>
  static Error refuse(fmt::format_string<Args...> format, Args&&... args) {
    return {Code::kFailedPrecondition, fmt::format(format, std::forward<Args>(args)...)};
  }

  const State& state(size_t operand) const {
    static const State same;
    const ValueId id = operand < node_.inputs.size() ? node_.inputs[operand] : kNone;
    return id == kNone ? same : states_[static_cast<size_t>(id)];
  }
  const Dims& dims(size_t operand) const { return *graph_.value(node_.inputs[operand]).type.shape; }
  const Dims& result_dims() const { return *graph_.value(node_.outputs[0]).type.shape; }
  size_t axis_of(int64_t axis, size_t rank) const { return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis); }
  bool rest_is_same(size_t first) const {
    for (size_t i = first; i < node_.inputs.size(); ++i)
      if (!state(i).is_same()) return false;
    return true;
  }

  static Error unknown() { return {Code::kFailedPrecondition, "is not known to keep the padding apart"}; }

  Result<State> of_sizes() const {
    for (size_t i = 0; i < node_.inputs.size(); ++i)
      if (state(i).is_along()) return refuse("computes with the length");
    return State::size();
  }

  /// What the operand is behind the end along an axis of the result.
  Tail part(size_t operand, size_t axis) const {
    const State& own = state(operand);
    const size_t behind = result_dims().size() - dims(operand).size();
    if (axis >= behind) {
      if (const Tail* tail = own.tail(axis - behind)) return *tail;
    }
    if (const auto known = known_number(graph_, node_.inputs[operand])) {
      const double held = as_held(graph_.value(node_.inputs[operand]).type.dtype, *known);
      if (!std::isnan(held)) return Tail::number(held);
    }
    if (own.interval.is_number()) return Tail::number(own.interval.least);
    return own.is_same() && !is_tame(node_.inputs[operand]) ? Tail::anything() : Tail{};
  }

  /// A table of what may be looked at holds numbers as low as those that hide the padding.
  bool is_tame(ValueId id) const {
    const ConstantPtr constant = graph_.constant(id);
    if (!constant) return false;
    if (constant->dtype != DType::kFloat32)
      return constant->dtype != DType::kFloat16 && constant->dtype != DType::kBFloat16 && constant->dtype != DType::kFloat64;
    return std::ranges::all_of(constant->span<float>(), [](float each) { return std::abs(each) < -Tail::kLowest; });
  }

  /// Along all axes.
  bool tame(size_t operand) const {
    return std::ranges::all_of(state(operand).axes, [](const auto& each) { return each.second.is_tame(); });
  }

  Result<State> all_along(const Tail& tail) const {
    std::vector<std::pair<size_t, Tail>> axes;
    for (size_t axis = 0; axis < result_dims().size(); ++axis)
      if (mentions(result_dims()[axis], symbol_)) axes.emplace_back(axis, tail);
    return State::along(std::move(axes));
  }

  /// What a Where chooses from is finite along an axis only if it is so along the others: where it hides queries, nothing of a row is above the lowest numbers.
  Tail chosen_part(size_t operand, size_t axis) const {
    const Tail own = part(operand, axis);
    return (own.is_number() && own.exact) || tame(operand) ? own : Tail::anything();
  }

  Result<State> elementwise() const {
    std::vector<std::pair<size_t, Tail>> axes;
    for (size_t axis = 0; axis < result_dims().size(); ++axis) {
      std::vector<Tail> parts;
      bool has = false;
      for (size_t i = 0; i < node_.inputs.size(); ++i) {
        if (node_.inputs[i] == kNone) continue;
        const size_t behind = result_dims().size() - dims(i).size();
        has |= axis >= behind && state(i).tail(axis - behind);
        parts.push_back(node_.op == Op::kWhere && i > 0 ? chosen_part(i, axis) : part(i, axis));
      }
      if (has) axes.emplace_back(axis, combine(node_.op, graph_.value(node_.outputs[0]).type.dtype, parts));
    }
    return State::along(std::move(axes));
  }

  /// An operand that is broadcast to a shape, or a number to all of it.
  Result<State> expand() const {
    const bool constant = node_.op == Op::kConstantOfShape;
    if (!constant && state(0).is_size()) return refuse("computes with the length");
    std::vector<std::pair<size_t, Tail>> axes;
    for (size_t axis = 0; axis < result_dims().size(); ++axis)
      if (mentions(result_dims()[axis], symbol_)) axes.emplace_back(axis, constant ? Tail::anything() : part(0, axis));
    return State::along(std::move(axes));
  }

  Result<State> reshape() const {
    if (!state(0).is_along()) return state(0).is_size() ? Result<State>(State::size()) : Result<State>(State{});
    const Dims &from = dims(0), &to = result_dims();
    const auto before = [](const Dims& all, size_t axis) {
      Dim product = 1;
      for (size_t i = 0; i < axis; ++i) product = product * all[i];
      return product;
    };
    std::vector<std::pair<size_t, Tail>> axes;
    size_t next = 0;
    for (const auto& [axis, tail] : state(0).axes) {
      while (next < to.size() && !(to[next] == from[axis])) ++next;
      if (next == to.size() || !(before(from, axis) == before(to, next))) return refuse("merges '{}' with another axis", symbol_);
      axes.emplace_back(next++, tail);
    }
    return State::along(std::move(axes));
  }

  Result<State> transpose() const {
    const auto perm = node_.integers("perm");
    const size_t rank = dims(0).size();
    std::vector<std::pair<size_t, Tail>> axes;
    for (size_t to = 0; to < rank; ++to) {
      const size_t from = perm.empty() ? rank - 1 - to : static_cast<size_t>(perm[to]);
      if (const Tail* tail = state(0).tail(from)) axes.emplace_back(to, *tail);
    }
    return State::along(std::move(axes));
  }

  Result<State> gather() const {
    const size_t axis = axis_of(node_.integer("axis", 0), dims(0).size()), added = dims(1).size();
    std::vector<std::pair<size_t, Tail>> axes;
    if (state(0).is_same()) {  // an embedding: of 0, which is always there
      for (const auto& [each, tail] : state(1).axes) axes.emplace_back(axis + each, Tail{});
      return State::along(std::move(axes));
    }
    if (!state(1).is_same()) return unknown();
    if (state(0).tail(axis)) {
      const auto index = known_number(graph_, node_.inputs[1]);
      if (!index || *index != 0) return refuse("picks elements along '{}' that need not be there", symbol_);
    }
    for (const auto& [each, tail] : state(0).axes)
      if (each != axis) axes.emplace_back(each < axis ? each : each + added - 1, tail);
    return State::along(std::move(axes));
  }

  /// The first so many of a table, or a part of other axes.
  Result<State> slice() const {
    if (state(0).is_size()) return State::size();
    if (state(0).is_same()) {
      const auto starts = node_.integers("starts"), steps = node_.integers("steps");
      const auto all = [](const std::vector<int64_t>& list, int64_t value) {
        return std::ranges::all_of(list, [&](int64_t each) { return each == value; });
      };
      if (starts.empty() || !all(starts, 0) || !all(steps, 1) || !state(1).is_same() || state(2).is_along()) return unknown();
      std::vector<std::pair<size_t, Tail>> axes;
      for (size_t axis = 0; axis < result_dims().size(); ++axis)
        if (mentions(result_dims()[axis], symbol_)) axes.emplace_back(axis, Tail{});
      return State::along(std::move(axes));
    }
    if (!rest_is_same(1)) return unknown();
    return other_axis();
  }

  /// Whatever it does, it does not do it along the dimension.
  Result<State> other_axis() const {
    std::vector<std::pair<size_t, Tail>> axes;
    for (size_t axis = 0; axis < result_dims().size(); ++axis) {
      if (!mentions(result_dims()[axis], symbol_)) continue;
      std::optional<Tail> tail;
      for (size_t i = 0; i < node_.inputs.size(); ++i) {
        const Tail* const own = state(i).tail(axis);
        if (!own) continue;
        if (!(dims(i)[axis] == result_dims()[axis])) return refuse("works along '{}'", symbol_);
        tail = node_.op == Op::kConcat ? (own->is_tame() ? Tail{} : Tail::anything()) : *own;
      }
      if (!tail) return unknown();
      axes.emplace_back(axis, *tail);
    }
    return State::along(std::move(axes));
  }

  Result<State> product() const {
    const size_t a_rank = dims(0).size(), b_rank = dims(1).size();
    if (a_rank < 2 || b_rank < 2) return unknown();
    const bool turn_a = node_.integer("transA", 0) != 0, turn_b = node_.integer("transB", 0) != 0;
    const size_t a_inner = a_rank - (turn_a ? 2 : 1), b_inner = b_rank - (turn_b ? 1 : 2);
    const Tail *a = state(0).tail(a_inner), *b = state(1).tail(b_inner);
    if ((a != nullptr) != (b != nullptr)) return unknown();
    if (a && !((a->is_zero() && b->is_tame()) || (b->is_zero() && a->is_tame())))
      return refuse("adds up along '{}' what is not masked", symbol_);
    bool all_tame = true;
    for (size_t i = 0; i < node_.inputs.size(); ++i) all_tame = all_tame && tame(i);
    return all_along(all_tame ? Tail{} : Tail::anything());
  }

  /// Queries keep to themselves; keys and values behind the end must have no weight.
  Result<State> attention() {
    if (!rest_is_same(4) || node_.outputs.size() > 1 || dims(0).size() != 4 || state(0).tail(3) || state(1).tail(3)) return unknown();
    const Tail *k = state(1).tail(2), *v = state(2).tail(2);
    if ((k != nullptr) != (v != nullptr) || (k && !(k->is_tame() && v->is_tame()))) return unknown();
    const bool causal = node_.integer("is_causal", 0) != 0 && state(0).tail(2);  // only what comes before counts
    if (k && !causal) {
      const Tail* const mask = node_.inputs.size() > 3 && node_.inputs[3] != kNone ? state(3).tail(dims(3).size() - 1) : nullptr;
      if (!mask) return refuse("looks at what is behind the end: nothing masks it");
      constexpr std::string_view kNotKnown = "has a mask that is not known to leave nothing of what is behind the end";
      if (graph_.value(node_.inputs[3]).type.dtype == DType::kBool) {
        if (!mask->is_number() || !mask->exact || mask->behind != 0 || mask->where_one == 0) return refuse("{}", kNotKnown);
        masks_ |= mask->from;
      } else {
        const auto from = hidden_by_mask(facts_, node_.inputs[3], 0, &node_);
        if (!from) return refuse("{}: {}", kNotKnown, from.error().message);
        masks_ |= *from;
      }
    }
    const bool masked = node_.inputs.size() > 3 && node_.inputs[3] != kNone && !state(3).is_same();
    return all_along(tame(0) && tame(1) && tame(2) && (!masked || leaves_something(facts_, node_.inputs[3])) ? Tail{} : Tail::anything());
  }

  Result<State> softmax() {
    const size_t rank = dims(0).size(), along = axis_of(node_.integer("axis", -1), rank);
    std::vector<std::pair<size_t, Tail>> axes;
    for (const auto& [axis, tail] : state(0).axes) {
      if (axis == along) {
        const auto from = hidden_by_mask(facts_, node_.inputs[0], rank - 1 - along);
        if (!from) return refuse("shares with what is behind the end: {}", from.error().message);
        masks_ |= *from;
      }
      // A row of the lowest numbers only may be one of -inf only, in a narrower type if not in this one: its shares are NaN.
      axes.emplace_back(axis, axis == along ? Tail::about(0) : tail.is_tame() ? Tail{} : Tail::anything());
    }
    return State::along(std::move(axes));
  }

  Result<State> normalise() const {
    const size_t first = axis_of(node_.integer("axis", -1), dims(0).size());
    if (!rest_is_same(1)) return unknown();
    std::vector<std::pair<size_t, Tail>> axes;
    for (const auto& [axis, tail] : state(0).axes) {
      if (axis >= first) return refuse("normalises along '{}'", symbol_);
      axes.emplace_back(axis, tail.is_tame() && node_.number("epsilon", 1e-5) > 0 ? Tail{} : Tail::anything());
    }
    return State::along(std::move(axes));
  }

  /// From the front: what is behind the end comes last.
  Result<State> cumulate() const {
    if (!rest_is_same(1) || node_.integer("reverse", 0) != 0) return unknown();
    std::vector<std::pair<size_t, Tail>> axes;
    for (const auto& [axis, tail] : state(0).axes) axes.emplace_back(axis, tail.is_tame() ? Tail{} : Tail::anything());
    return State::along(std::move(axes));
  }

  Result<State> reduce() const {
    const size_t rank = dims(0).size();
    std::vector<int64_t> given = node_.integers("axes");
    if (node_.inputs.size() > 1 && node_.inputs[1] != kNone) {
      const auto& known = values_[static_cast<size_t>(node_.inputs[1])];
      if (!known) return refuse("reduces axes that are not known");
      for (const Dim& axis : *known) given.push_back(axis.value().value_or(0));
    }
    std::vector<bool> reduced(rank, given.empty() && node_.integer("noop_with_empty_axes", 0) == 0);
    for (const int64_t axis : given) reduced[axis_of(axis, rank)] = true;
    const bool keeps = node_.integer("keepdims", 1) != 0;
    std::vector<std::pair<size_t, Tail>> axes;
    for (const auto& [axis, tail] : state(0).axes) {
      if (!reduced[axis]) {
        const auto gone = static_cast<size_t>(std::count(reduced.begin(), reduced.begin() + static_cast<std::ptrdiff_t>(axis), true));
        axes.emplace_back(axis - (keeps ? 0 : gone), tail.is_tame() ? Tail{} : Tail::anything());
        continue;
      }
      if (node_.op == Op::kReduceMean) return refuse("divides by the length");
      const bool sums = node_.op != Op::kReduceMax && node_.op != Op::kReduceMin;
      if (!sums || !tail.is_zero()) return refuse("takes in what is behind the end");
    }
    return State::along(std::move(axes));
  }

  const PadFacts& facts_;
  const Graph& graph_;
  const Node& node_;
  const std::vector<State>& states_;
  const ShapeValues& values_;
  const std::string& symbol_;
  PaddedInputs& masks_;
};

}  // namespace

Result<PadState> pad_rule(const PadFacts& facts, const Node& node, PaddedInputs& masks) { return Rule(facts, node, masks).run(); }

}  // namespace serin::graph
