// slice_operators.cc: x[begin:end:stride, ..., newaxis, 3].
//
// StridedSlice has one entry for each item between the brackets, and five masks of bits that say which entries are special. The entries are
// taken apart into slices of axes, axes that are new, and axes that are dropped afterwards.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/tensorflow/operators.h"
#include "runtime/formats/tensorflow/slice.h"

namespace serin::formats::tf {

using graph::Op;

namespace {

using List = std::vector<int64_t>;

/// One axis of the operand.
struct Cut {
  int64_t axis, entry, stride;
  bool open_begin, open_end, drop;
};

struct Entries {
  std::vector<Cut> cuts;
  List added;  ///< places of new axes, in the result
  List dropped;
};

Entries read_entries(NodeImport& n, size_t count, const List& strides, size_t rank) {
  const auto mask = [&](std::string_view key, size_t entry) { return ((static_cast<uint64_t>(n.integer(key, 0)) >> entry) & 1) != 0; };
  Entries entries;
  size_t real = 0, ellipses = 0;
  for (size_t i = 0; i < count; ++i) {
    const bool ellipsis = mask("ellipsis_mask", i);
    ellipses += ellipsis ? 1 : 0;
    if (!ellipsis && !mask("new_axis_mask", i)) ++real;
  }
  if (real > rank || ellipses > 1) {
    n.corrupt(fmt::format("{} indices of a tensor of rank {}", real, rank));
    return entries;
  }
  int64_t axis = 0, place = 0;
  for (size_t i = 0; i < count; ++i) {
    if (mask("ellipsis_mask", i)) {
      axis += static_cast<int64_t>(rank - real);
      place += static_cast<int64_t>(rank - real);
    } else if (mask("new_axis_mask", i)) {
      entries.added.push_back(place++);
    } else {
      const bool drop = mask("shrink_axis_mask", i);
      entries.cuts.push_back(
          {axis, static_cast<int64_t>(i), drop ? 1 : strides[i], mask("begin_mask", i) && !drop, mask("end_mask", i) && !drop, drop});
      if (drop)
        entries.dropped.push_back(axis);
      else
        ++place;
      ++axis;
    }
  }
  return entries;
}

/// The entry of a list of bounds, as a tensor of one element.
ValueId entry_of(NodeImport& n, size_t operand, int64_t entry) {
  graph::Builder& b = n.builder();
  if (const auto known = n.known(operand); known && static_cast<size_t>(entry) < known->size())
    return b.integers({(*known)[static_cast<size_t>(entry)]});
  return b.slice(b.cast(n.in(operand), DType::kInt64), 0, entry, entry + 1);
}

/// The bounds of a slice as attributes if all are known, otherwise as operands.
struct Bounds {
  List axes, starts, ends, steps;
  bool known = true;
};

Bounds known_bounds(NodeImport& n, const std::vector<Cut>& cuts) {
  Bounds bounds;
  const auto begins = n.known(1), ends = n.known(2);
  const graph::Dims* const begin_dims = n.builder().elements(n.in(1));
  const graph::Dims* const end_dims = n.builder().elements(n.in(2));
  const auto at = [](const auto& list, const graph::Dims* dims, int64_t entry) -> std::optional<int64_t> {
    const auto i = static_cast<size_t>(entry);
    if (list) return i < list->size() ? std::optional((*list)[i]) : std::nullopt;
    return dims && i < dims->size() ? (*dims)[i].value() : std::nullopt;
  };
  for (const Cut& cut : cuts) {
    if (cut.open_begin && cut.open_end && cut.stride == 1) continue;
    const auto begin = cut.open_begin ? std::optional<int64_t>(cut.stride > 0 ? 0 : INT64_MAX) : at(begins, begin_dims, cut.entry);
    auto end = cut.open_end ? std::optional<int64_t>(cut.stride > 0 ? INT64_MAX : INT64_MIN) : at(ends, end_dims, cut.entry);
    if (cut.drop && begin) end = *begin == -1 ? INT64_MAX : *begin + 1;
    bounds.known &= begin.has_value() && end.has_value();
    bounds.axes.push_back(cut.axis);
    bounds.starts.push_back(begin.value_or(0));
    bounds.ends.push_back(end.value_or(0));
    bounds.steps.push_back(cut.stride);
  }
  return bounds;
}

ValueId cut_by_operands(NodeImport& n, const std::vector<Cut>& cuts) {
  graph::Builder& b = n.builder();
  std::vector<ValueId> starts, ends;
  List axes, steps;
  for (const Cut& cut : cuts) {
    if (cut.open_begin && cut.open_end && cut.stride == 1) continue;
    starts.push_back(cut.open_begin ? b.integers({cut.stride > 0 ? 0 : INT64_MAX}) : entry_of(n, 1, cut.entry));
    if (cut.drop) {
      // begin + 1, and the end of the axis for -1
      const ValueId next = b.add(Op::kAdd, {starts.back(), b.integers({1})});
      ends.push_back(b.add(Op::kWhere, {b.add(Op::kEqual, {next, b.integers({0})}), b.integers({INT64_MAX}), next}));
    } else {
      ends.push_back(cut.open_end ? b.integers({cut.stride > 0 ? INT64_MAX : INT64_MIN}) : entry_of(n, 2, cut.entry));
    }
    axes.push_back(cut.axis);
    steps.push_back(cut.stride);
  }
  const auto join = [&b](const std::vector<ValueId>& parts) {
    return parts.size() == 1 ? parts[0] : b.add(Op::kConcat, parts, {{"axis", int64_t{0}}});
  };
  return b.add(Op::kSlice, {n.in(0), join(starts), join(ends), b.integers(axes), b.integers(steps)});
}

}  // namespace

void import_strided_slice(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  const auto dims = n.dims(0);
  const List strides = n.needed(3, "strides");
  if (!dims) return n.unsupported("a tensor of unknown rank");
  if (strides.size() > 32 || std::ranges::find(strides, 0) != strides.end()) return n.corrupt("a stride of 0, or too many indices");
  const Entries entries = read_entries(n, strides.size(), strides, dims->size());
  if (b.error()) return;
  Bounds bounds = known_bounds(n, entries.cuts);
  const bool stays = entries.added.empty() && entries.dropped.empty();
  if (stays && bounds.axes.empty()) return n.out_value(n.value(0));
  if (stays && bounds.known && n.prefers_first(0)) {
    for (int64_t& axis : bounds.axes) axis = place_in_first(axis, dims->size());
    return n.out_first(b.add(Op::kSlice, {n.first(0)},
                             {{"starts", bounds.starts}, {"ends", bounds.ends}, {"axes", bounds.axes}, {"steps", bounds.steps}}));
  }
  ValueId x = n.in(0);
  if (bounds.known && entries.dropped.size() == 1 && bounds.axes == entries.dropped) {
    const ValueId index = b.constant(graph::make_scalar(DType::kInt64, static_cast<double>(bounds.starts[0])));
    x = b.add(Op::kGather, {x, index}, {{"axis", bounds.axes[0]}});
  } else {
    if (!bounds.known)
      x = cut_by_operands(n, entries.cuts);
    else if (!bounds.axes.empty())
      x = b.add(Op::kSlice, {x}, {{"starts", bounds.starts}, {"ends", bounds.ends}, {"axes", bounds.axes}, {"steps", bounds.steps}});
    if (!entries.dropped.empty()) x = b.squeeze(x, entries.dropped);
  }
  n.out(entries.added.empty() ? x : b.unsqueeze(x, entries.added));
}

void import_slice(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  const auto dims = n.dims(0);
  if (!dims) return n.unsupported("a tensor of unknown rank");
  const auto begins = n.known(1), sizes = n.known(2);
  List axes(dims->size());
  for (size_t axis = 0; axis < axes.size(); ++axis) axes[axis] = static_cast<int64_t>(axis);
  if (begins && sizes) {
    if (begins->size() != dims->size() || sizes->size() != dims->size()) return n.corrupt("begins and sizes that do not fit");
    List ends;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      const int64_t begin = (*begins)[axis], size = (*sizes)[axis];
      if (begin < 0 || size < -1) return n.corrupt("a negative begin or size");
      ends.push_back(size == -1 || size > INT64_MAX - begin ? INT64_MAX : begin + size);
    }
    return n.out(b.add(Op::kSlice, {n.in(0)}, {{"starts", *begins}, {"ends", ends}, {"axes", axes}}));
  }
  const ValueId begin = n.i64(1), size = n.i64(2);
  const ValueId end = b.add(Op::kAdd, {begin, size});
  const ValueId open = b.add(Op::kWhere, {b.add(Op::kEqual, {size, b.integers({-1})}), b.integers({INT64_MAX}), end});
  n.out(b.add(Op::kSlice, {n.in(0), begin, open, b.integers(axes)}));
}

}  // namespace serin::formats::tf
