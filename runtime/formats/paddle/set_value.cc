// set_value.cc: x[starts:ends:steps] = value.
//
// Where the range is known, each axis is cut into what is before it, the part, and what is behind. Otherwise each element of x asks whether it is in the
// range, and for its place there.

#include <algorithm>
#include <limits>
#include <span>

#include "runtime/formats/paddle/operators.h"

namespace serin::formats::paddle {
namespace {

ValueId replaced(Node& node, ValueId x, std::span<const int64_t> axes, std::span<const int64_t> starts, std::span<const int64_t> ends,
                 ValueId value) {
  if (axes.empty()) return node.b.add(Op::kExpand, {value, node.shape_of(x)});
  const int64_t axis = axes[0];
  const ValueId part = node.b.slice(x, axis, starts[0], ends[0]);
  std::vector<ValueId> parts;
  if (starts[0] != 0) parts.push_back(node.b.slice(x, axis, 0, starts[0]));
  parts.push_back(replaced(node, part, axes.subspan(1), starts.subspan(1), ends.subspan(1), value));
  if (ends[0] < std::numeric_limits<int32_t>::max()) parts.push_back(node.b.slice(x, axis, ends[0], std::numeric_limits<int64_t>::max()));
  return node.concat(parts, axis);
}

/// A range along each axis: lists of i64.
struct Range {
  List axes;
  ValueId starts = kNone, ends = kNone, steps = kNone;
};

/// The k-th of the list, of rank 1; where it is below 0, counted from the end of an axis of `size`.
ValueId bound(Node& node, ValueId list, size_t k, ValueId size) {
  const auto begin = static_cast<int64_t>(k);
  const ValueId given = node.b.slice(list, 0, begin, begin + 1);
  const ValueId negative = node.binary(Op::kLess, given, node.b.number(DType::kInt64, 0));
  return node.b.add(Op::kWhere, {negative, node.binary(Op::kAdd, given, size), given});
}

/// `value` is gathered along each axis, unless it has one element there.
ValueId replaced_by_place(Node& node, ValueId x, const Range& range, ValueId value) {
  const size_t rank = node.rank(x), value_rank = node.rank(value);
  const ValueId zero = node.b.number(DType::kInt64, 0), one = node.b.number(DType::kInt64, 1);
  ValueId mask = kNone;
  for (size_t k = 0; k < range.axes.size(); ++k) {
    const auto axis = static_cast<size_t>(node.axis(range.axes[k], rank));
    const ValueId size = node.size_of(x, static_cast<int64_t>(axis)), end = bound(node, range.ends, k, size);
    const ValueId places = node.b.add(Op::kRange, {zero, node.b.reshape(size, {}), one});
    ValueId place = node.binary(Op::kSub, places, bound(node, range.starts, k, size));
    ValueId inside = node.binary(Op::kAnd, node.binary(Op::kGreaterOrEqual, place, zero), node.binary(Op::kLess, places, end));
    if (range.steps != kNone) {
      const auto at = static_cast<int64_t>(k);
      const ValueId step = node.b.slice(range.steps, 0, at, at + 1);
      inside = node.binary(Op::kAnd, inside, node.binary(Op::kEqual, node.binary(Op::kMod, place, step), zero));
      place = node.binary(Op::kDiv, place, step);
    }
    if (axis + value_rank >= rank && node.b.size(value, axis + value_rank - rank) != 1) {
      const auto of_value = static_cast<int64_t>(axis + value_rank - rank);
      const ValueId last = node.binary(Op::kSub, node.size_of(value, of_value), one);
      place = node.binary(Op::kMin, node.binary(Op::kMax, place, zero), last);
      value = node.b.add(Op::kGather, {value, place}, {{"axis", of_value}});
    }
    List behind;
    for (size_t i = 1; axis + i < rank; ++i) behind.push_back(static_cast<int64_t>(i));
    if (!behind.empty()) inside = node.b.unsqueeze(inside, behind);
    mask = mask == kNone ? inside : node.binary(Op::kAnd, mask, inside);
  }
  return mask == kNone ? node.b.add(Op::kExpand, {value, node.shape_of(x)}) : node.b.add(Op::kWhere, {mask, value, x});
}

/// The values of the attributes; kNone if there are none.
ValueId stored_value(Node& node) {
  std::vector<double> numbers;
  for (const char* const name : {"values", "fp32_values", "int32_values", "int64_values", "fp64_values", "bool_values"})
    if (const auto some = node.has(name) ? node.numbers(name) : std::nullopt; some && !some->empty()) numbers = *some;
  const List shape = node.integers("shape").value_or(List{1});
  if (!Shape::fits(shape.size()) || Shape(shape).checked_elements() != static_cast<int64_t>(numbers.size())) return kNone;
  return node.floats(numbers, Shape(shape));
}

}  // namespace

void import_set_value(Node& node, Op /*op*/) {
  const ValueId x = node.in("Input");
  const auto axes = node.integers("axes");
  Range range{axes.value_or(List{}), node.list("starts", "StartsTensorList"), node.list("ends", "EndsTensorList"),
              node.list("steps", "StepsTensorList")};
  const auto fits = [&](ValueId list) { return node.b.size(list, 0) == static_cast<int64_t>(range.axes.size()); };
  if (!axes || axes->size() > Shape::kMaxRank || range.starts == kNone || range.ends == kNone || !fits(range.starts) || !fits(range.ends))
    return node.corrupt("set_value without a range");
  if (range.steps != kNone) {
    const auto steps = node.b.known_integers(range.steps);
    if (!fits(range.steps) || (steps && std::ranges::any_of(*steps, [](int64_t step) { return step < 1; })))
      return node.refuse("set_value that goes backwards");
    if (steps && std::ranges::all_of(*steps, [](int64_t step) { return step == 1; })) range.steps = kNone;
  }
  ValueId value = node.maybe("ValueTensor");
  if (value == kNone) value = stored_value(node);
  if (value == kNone) return node.corrupt("set_value without values");
  value = node.b.cast(value, node.b.dtype(x));
  if (const auto gone = node.integers("decrease_axes");
      gone && !gone->empty() && node.b.rank(value).value_or(0) > 0 && node.b.rank(value).value_or(0) + gone->size() <= node.rank(x))
    value = node.b.unsqueeze(value, *gone);
  const auto starts = node.b.known_integers(range.starts), ends = node.b.known_integers(range.ends);
  const bool known = starts && ends && range.steps == kNone;
  node.out("Out", known ? replaced(node, x, range.axes, *starts, *ends, value) : replaced_by_place(node, x, range, value));
}

}  // namespace serin::formats::paddle
