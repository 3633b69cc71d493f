// paddable_rules.cc: the rules of prove_paddable by the names that the rows of ops/*.def give them, and those of sizes and of what works
// element by element.
//
// Operators of which nothing is known are refused: a proof that fails costs a plan for each length, a wrong one would give wrong answers.

#include <algorithm>
#include <cmath>

#include "kernels/float16.h"
#include "runtime/graph/passes/match.h"
#include "runtime/graph/proofs/batchable.h"
#include "runtime/graph/proofs/paddable_rule.h"

namespace serin::graph {

using PadOutcome = Result<PadState>;

/// The names of ops/*.def. Operands that are sizes give a size, except where they shape the result.
struct PadRule::Rules {
  template <auto kRule>
  static Outcome call(PadRule& rule) {
    return (rule.*kRule)();
  }
  static constexpr bool kShapes = true, kFinite = true;

  static constexpr Rule unknown{&call<&PadRule::unknown>};
  static constexpr Rule size_of{&call<&PadRule::size_of>, kShapes};
  static constexpr Rule expand{&call<&PadRule::expand>, kShapes};
  static constexpr Rule range{&call<&PadRule::range>, kShapes};
  static constexpr Rule reshape{&call<&PadRule::reshape>, kShapes};
  static constexpr Rule slice{&call<&PadRule::slice>, kShapes};
  static constexpr Rule view{&call<&PadRule::reshape>};
  static constexpr Rule transpose{&call<&PadRule::transpose>};
  static constexpr Rule gather{&call<&PadRule::gather>};
  static constexpr Rule gather_elements{&call<&PadRule::gather_elements>};
  static constexpr Rule other_axis{&call<&PadRule::other_axis>};
  static constexpr Rule product{&call<&PadRule::product>};
  static constexpr Rule attention{&call<&PadRule::attention>};
  static constexpr Rule softmax{&call<&PadRule::softmax>};
  static constexpr Rule normalise{&call<&PadRule::normalise>};
  static constexpr Rule cumulate{&call<&PadRule::cumulate>};
  static constexpr Rule reduce{&call<&PadRule::reduce>};
  /// One element at a time: finite operands give a finite result, or may give NaN.
  static constexpr Rule keeps_finite{&call<&PadRule::elementwise>, !kShapes, kFinite};
  static constexpr Rule may_be_nan{&call<&PadRule::elementwise>};

  static const Rule& of(Op op) {
    static constexpr const Rule* kRules[] = {
#define SERIN_OP(name, least, most, results, infer, values, batch, padding, ...) &padding,
#include "runtime/graph/ops/all.def"
    };
    return *kRules[static_cast<size_t>(op)];
  }
};

PadOutcome PadRule::run() {
  const Rule& rule = Rules::of(node_.op);
  const auto is_size = [&](ValueId id) { return id != kNone && states_[static_cast<size_t>(id)].is_size(); };
  if (!rule.shapes && std::ranges::any_of(node_.inputs, is_size)) return of_sizes();
  return rule.apply(*this);
}

bool PadRule::rest_is_same(size_t first) const {
  for (size_t i = first; i < node_.inputs.size(); ++i)
    if (!state(i).is_same()) return false;
  return true;
}

namespace {

template <class T>
bool all_tame(const Constant& constant, double (*number)(T)) {
  const Elements<T> elements = constant.span<T>();
  return elements.empty() ||
         (elements.data() && std::ranges::all_of(elements, [&](T each) { return std::abs(number(each)) <= Tail::kMostTame; }));
}

bool all_tame(const Constant& constant) {
  switch (constant.dtype) {
    case DType::kFloat32: return all_tame<float>(constant, [](float x) { return double{x}; });
    case DType::kFloat64: return all_tame<double>(constant, [](double x) { return x; });
    case DType::kFloat16: return all_tame<kernels::Half>(constant, [](kernels::Half x) { return double{kernels::to_float(x)}; });
    case DType::kBFloat16: return all_tame<kernels::BFloat16>(constant, [](kernels::BFloat16 x) { return double{kernels::to_float(x)}; });
    default: return false;
  }
}

constexpr Op kMoves[] = {Op::kIdentity, Op::kExpand, Op::kReshape, Op::kFlatten, Op::kSqueeze, Op::kUnsqueeze, Op::kTranspose};

}  // namespace

bool PadRule::is_tame_table(ValueId id) const {
  if (!is_float(graph_.value(id).type.dtype)) return true;
  while (true) {
    if (const ConstantPtr constant = graph_.constant(id)) return all_tame(*constant);
    const NodeId maker = graph_.producer(id);
    if (maker == kNone || std::ranges::find(kMoves, graph_.node(maker).op) == std::end(kMoves)) return false;
    id = graph_.node(maker).inputs[0];
  }
}

bool PadRule::tame(size_t operand) const {
  return std::ranges::all_of(state(operand).axes, [](const auto& each) { return each.second.is_tame(); });
}

PadState PadRule::all_along(const Tail& tail) const {
  std::vector<std::pair<size_t, Tail>> axes;
  for (size_t axis = 0; axis < result_dims().size(); ++axis)
    if (mentions(result_dims()[axis], symbol_)) axes.emplace_back(axis, tail);
  return PadState::along(std::move(axes));
}

PadOutcome PadRule::range() const { return state(0).is_same() && state(2).is_same() ? Outcome(PadState::along({{0, Tail{}}})) : unknown(); }

PadOutcome PadRule::of_sizes() const {
  for (size_t i = 0; i < node_.inputs.size(); ++i)
    if (state(i).is_along()) return refuse("computes with the length");
  return PadState::size();
}

/// What the operand is behind the end along an axis of the result.
Tail PadRule::part(size_t operand, size_t axis) const {
  const PadState& own = state(operand);
  const size_t behind = result_dims().size() - dims(operand).size();
  if (axis >= behind) {
    if (const Tail* tail = own.tail(axis - behind)) return *tail;
  }
  if (const auto known = known_number(graph_, node_.inputs[operand])) {
    const double held = as_held(graph_.value(node_.inputs[operand]).type.dtype, *known);
    if (!std::isnan(held)) return Tail::number(held);
  }
  if (own.interval.is_number()) return Tail::number(own.interval.least);
  // A table of what may be looked at holds numbers as low as those that hide the padding.
  return own.is_same() && !is_tame_table(node_.inputs[operand]) ? Tail::anything() : Tail{};
}

/// What a Where chooses from is finite along an axis only if it is so along the others: where it hides queries, nothing of a row is above the lowest numbers.
Tail PadRule::chosen_part(size_t operand, size_t axis) const {
  const Tail own = part(operand, axis);
  return (own.is_number() && own.exact) || tame(operand) ? own : Tail::anything();
}

PadOutcome PadRule::elementwise() const {
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
    if (has) axes.emplace_back(axis, combine(node_.op, graph_.value(node_.outputs[0]).type.dtype, parts, Rules::of(node_.op).finite));
  }
  return PadState::along(std::move(axes));
}

}  // namespace serin::graph
