// paddable_sums.cc: the rules of operators in which elements of an axis meet: products, attention, normalisations, reductions.
//
// A sum over the dimension is right where the tail is 0, a product where one tail is 0 and the other finite, a softmax where the tail is so low that its share is
// exactly 0 whatever was added to it: -3e38 is, and -10000 where the model's scores cannot be as large (paddable_mask.h).

#include <fmt/format.h>

#include <algorithm>

#include "runtime/graph/proofs/paddable_mask.h"
#include "runtime/graph/proofs/paddable_rule.h"

namespace serin::graph {

using PadOutcome = Result<PadState>;

PadOutcome PadRule::product() const {
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

/// Each row of a mask has an element that counts; of two rows together there may be none.
Status PadRule::rely_on(const Counted& counted) {
  if (counted.apart) return refuse("has a mask that joins different rows of what counts");
  masks_ |= counted.inputs;
  return {};
}

/// Queries keep to themselves; keys and values behind the end must have no weight.
PadOutcome PadRule::attention() {
  if (!rest_is_same(4) || node_.outputs.size() > 1 || dims(0).size() != 4 || state(0).tail(3) || state(1).tail(3)) return unknown();
  const Tail *k = state(1).tail(2), *v = state(2).tail(2);
  if ((k != nullptr) != (v != nullptr) || (k && !(k->is_tame() && v->is_tame()))) return unknown();
  const bool causal = node_.integer("is_causal", 0) != 0 && state(0).tail(2);  // only what comes before counts
  const bool masked = node_.inputs.size() > 3 && node_.inputs[3] != kNone && !state(3).is_same();
  if (k && !causal) {
    const Tail* const mask = node_.inputs.size() > 3 && node_.inputs[3] != kNone ? state(3).tail(dims(3).size() - 1) : nullptr;
    if (!mask) return refuse("looks at elements behind the end: nothing masks it");
    constexpr std::string_view kNotKnown = "has a mask that is not known to leave nothing of what is behind the end";
    if (graph_.value(node_.inputs[3]).type.dtype == DType::kBool) {
      if (!mask->is_number() || !mask->exact || mask->behind != 0 || mask->where_one == 0)
        return refuse("{}{}", kNotKnown, knows_queries(facts_, node_.inputs[3], 0) ? fmt::format(": {}", kKnowsQueries) : "");
      SERIN_CHECK(rely_on(mask->from));
    } else {
      const auto from = hidden_by_mask(facts_, node_.inputs[3], 0, &node_);
      if (!from) return refuse("{}: {}", kNotKnown, from.error().message);
      SERIN_CHECK(rely_on(*from));
    }
  }
  return all_along(tame(0) && tame(1) && tame(2) && (!masked || leaves_something(facts_, node_.inputs[3])) ? Tail{} : Tail::anything());
}

PadOutcome PadRule::softmax() {
  const size_t rank = dims(0).size(), along = axis_of(node_.integer("axis", -1), rank);
  std::vector<std::pair<size_t, Tail>> axes;
  for (const auto& [axis, tail] : state(0).axes) {
    if (axis == along) {
      const auto from = hidden_by_mask(facts_, node_.inputs[0], rank - 1 - along);
      if (!from) return refuse("shares with what is behind the end: {}", from.error().message);
      SERIN_CHECK(rely_on(*from));
    }
    // A row of the lowest numbers only may be one of -inf only, in a narrower type if not in this one: its shares are NaN.
    axes.emplace_back(axis, axis == along ? Tail::about(0) : tail.is_tame() ? Tail{} : Tail::anything());
  }
  return PadState::along(std::move(axes));
}

PadOutcome PadRule::normalise() const {
  const size_t first = axis_of(node_.integer("axis", -1), dims(0).size());
  if (!rest_is_same(1)) return unknown();
  std::vector<std::pair<size_t, Tail>> axes;
  for (const auto& [axis, tail] : state(0).axes) {
    if (axis >= first) return refuse("normalises along '{}'", symbol_);
    axes.emplace_back(axis, tail.is_tame() && node_.number("epsilon", 1e-5) > 0 ? Tail{} : Tail::anything());
  }
  return PadState::along(std::move(axes));
}

/// From the front: what is behind the end comes last.
PadOutcome PadRule::cumulate() const {
  if (!rest_is_same(1) || node_.integer("reverse", 0) != 0) return unknown();
  std::vector<std::pair<size_t, Tail>> axes;
  for (const auto& [axis, tail] : state(0).axes) axes.emplace_back(axis, tail.is_tame() ? Tail{} : Tail::anything());
  return PadState::along(std::move(axes));
}

PadOutcome PadRule::reduce() const {
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
  return PadState::along(std::move(axes));
}

}  // namespace serin::graph
