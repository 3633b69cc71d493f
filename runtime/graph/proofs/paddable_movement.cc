// paddable_movement.cc: the rules of operators that move elements and change shapes: where the padded axes go, and what is picked from behind the end.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runtime/graph/ops/infer.h"
#include "runtime/graph/passes/match.h"
#include "runtime/graph/proofs/batchable.h"
#include "runtime/graph/proofs/paddable_rule.h"

namespace serin::graph {

using PadOutcome = Result<PadState>;

/// An operand that is broadcast to a shape, or a number to all of it.
PadOutcome PadRule::expand() const {
  const bool constant = node_.op == Op::kConstantOfShape;
  if (!constant && state(0).is_size()) return refuse("computes with the length");
  std::vector<std::pair<size_t, Tail>> axes;
  for (size_t axis = 0; axis < result_dims().size(); ++axis)
    if (mentions(result_dims()[axis], symbol_)) axes.emplace_back(axis, constant ? Tail::anything() : part(0, axis));
  return PadState::along(std::move(axes));
}

namespace {

/// Where a reshape leaves an axis: at one of its size, with as many elements before it. Nothing: it is merged, or split.
std::optional<size_t> axis_after(const Dims& from, size_t axis, const Dims& to, size_t first = 0) {
  const Dim before = graph::product(from, 0, axis);
  for (size_t i = first; i < to.size(); ++i)
    if (to[i] == from[axis] && graph::product(to, 0, i) == before) return i;
  return std::nullopt;
}

/// A tail of a value whose axes went where `to` says (nothing: nowhere), one of `rank` axes then.
template <class To>
Tail taken_along(Tail tail, size_t old_rank, size_t rank, const To& to) {
  if (!tail.from.rows) return tail;
  for (size_t& from_end : *tail.from.rows) {
    const std::optional<size_t> axis = to(old_rank - 1 - from_end);
    if (!axis) return tail.moved();
    from_end = rank - 1 - *axis;
  }
  return tail;
}

}  // namespace

PadOutcome PadRule::reshape() const {
  if (!state(0).is_along()) return state(0).is_size() ? Outcome(PadState::size()) : Outcome(PadState{});
  const Dims &from = dims(0), &to = result_dims();
  std::vector<std::pair<size_t, Tail>> axes;
  size_t next = 0;
  for (const auto& [axis, tail] : state(0).axes) {
    const auto after = axis_after(from, axis, to, next);
    if (!after) return refuse("merges '{}' with another axis", symbol_);
    axes.emplace_back(*after, taken_along(tail, from.size(), to.size(), [&](size_t row) { return axis_after(from, row, to); }));
    next = *after + 1;
  }
  return PadState::along(std::move(axes));
}

PadOutcome PadRule::transpose() const {
  const auto perm = node_.integers("perm");
  const size_t rank = dims(0).size();
  const auto before = [&](size_t to) { return perm.empty() ? rank - 1 - to : static_cast<size_t>(perm[to]); };
  const auto after = [&](size_t from) {
    std::optional<size_t> to;
    for (size_t i = 0; i < rank; ++i)
      if (before(i) == from) to = i;
    return to;
  };
  std::vector<std::pair<size_t, Tail>> axes;
  for (size_t to = 0; to < rank; ++to) {
    const size_t from = before(to);
    if (const Tail* tail = state(0).tail(from)) axes.emplace_back(to, taken_along(*tail, rank, rank, after));
  }
  return PadState::along(std::move(axes));
}

PadOutcome PadRule::gather() const {
  const size_t axis = axis_of(node_.integer("axis", 0), dims(0).size()), added = dims(1).size();
  std::vector<std::pair<size_t, Tail>> axes;
  if (state(0).is_same()) {  // an embedding
    SERIN_CHECK(finds_row(1, dims(0)[axis]));
    const Tail found = is_tame_table(node_.inputs[0]) ? Tail{} : Tail::anything();
    for (const auto& [each, tail] : state(1).axes) axes.emplace_back(axis + each, found);
    return PadState::along(std::move(axes));
  }
  if (!state(1).is_same()) return unknown();
  if (state(0).tail(axis)) {
    const auto index = known_number(graph_, node_.inputs[1]);
    if (!index || *index != 0) return refuse("picks elements along '{}' that need not be there", symbol_);
  }
  for (const auto& [each, tail] : state(0).axes)
    if (each != axis) axes.emplace_back(each < axis ? each : each + added - 1, tail.moved());
  return PadState::along(std::move(axes));
}

/// What is looked up behind the end where it is known which; where it is not, a run that looks up what is not there fails, and the request is run as it is.
Status PadRule::finds_row(size_t index, const Dim& rows) const {
  const auto count = rows.value();
  if (!count) return {};
  for (const auto& [axis, tail] : state(index).axes) {
    const auto least = static_cast<double>(-*count), most = static_cast<double>(*count - 1);
    if (tail.is_number() && tail.exact && (tail.behind < least || tail.behind > most))
      return refuse("looks up element {:.0f} of {} behind the end", tail.behind, *count);
  }
  return {};
}

/// Of each row its own elements. Rows are along all other axes, as those of the indices are.
PadOutcome PadRule::gather_elements() const {
  const size_t axis = axis_of(node_.integer("axis", 0), dims(0).size());
  if (state(0).tail(axis)) return refuse("picks elements along '{}' that need not be there", symbol_);
  for (size_t each = 0; each < dims(0).size(); ++each)
    if (each != axis && state(0).tail(each) && !(dims(1)[each] == dims(0)[each])) return refuse("works along '{}'", symbol_);
  SERIN_CHECK(finds_row(1, dims(0)[axis]));
  const bool finite = state(0).is_same() ? is_tame_table(node_.inputs[0]) : tame(0);
  return all_along(finite ? Tail{} : Tail::anything());
}

/// The first so many of a table, or a part of other axes.
PadOutcome PadRule::slice() const {
  if (state(0).is_size()) return PadState::size();
  if (state(0).is_same()) {
    const auto starts = node_.integers("starts"), steps = node_.integers("steps");
    const auto all = [](const std::vector<int64_t>& list, int64_t value) {
      return std::ranges::all_of(list, [&](int64_t each) { return each == value; });
    };
    if (starts.empty() || !all(starts, 0) || !all(steps, 1) || !state(1).is_same() || state(2).is_along()) return unknown();
    return all_along(is_tame_table(node_.inputs[0]) ? Tail{} : Tail::anything());
  }
  if (!rest_is_same(1) || turns_around()) return unknown();
  return other_axis();
}

/// Whether it may read the padded axis from its end.
bool PadRule::turns_around() const {
  if (node_.inputs.size() > 4 && node_.inputs[4] != kNone) return true;
  const auto steps = node_.integers("steps"), axes = node_.integers("axes");
  for (size_t i = 0; i < steps.size(); ++i) {
    const size_t axis = axes.size() > i ? axis_of(axes[i], dims(0).size()) : i;
    if (steps[i] != 1 && (state(0).tail(axis) || axes.empty())) return true;
  }
  return false;
}

/// Whatever it does, it does not do it along the dimension.
PadOutcome PadRule::other_axis() const {
  std::vector<std::pair<size_t, Tail>> axes;
  for (size_t axis = 0; axis < result_dims().size(); ++axis) {
    if (!mentions(result_dims()[axis], symbol_)) continue;
    std::optional<Tail> tail;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      const Tail* const own = state(i).tail(axis);
      if (!own) continue;
      if (!(dims(i)[axis] == result_dims()[axis])) return refuse("works along '{}'", symbol_);
      if (node_.op != Op::kConcat)
        tail = own->moved();
      else if (!tail || tail->is_tame())
        tail = own->is_tame() ? Tail{} : Tail::anything();
    }
    if (!tail) return unknown();
    axes.emplace_back(axis, *tail);
  }
  return PadState::along(std::move(axes));
}

}  // namespace serin::graph
