// movement.cc: operators that move elements: reshaping, joining, cutting, repeating, padding.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "runtime/formats/paddle/operators.h"

namespace serin::formats::paddle {
namespace {

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

void import_reshape(Node& node, Op op) {
  const ValueId shape = node.list("shape|dims", "ShapeTensor Shape");
  if (shape == kNone) return node.corrupt("reshape without a shape");
  node.out("Out", node.binary(op, node.in("X"), shape));
}

void import_transpose(Node& node, Op op) {
  const auto order = node.integers("axis|perm");
  if (!order) return node.corrupt("transpose without an order");
  List perm = *order;
  for (int64_t& axis : perm) axis = node.axis(axis, perm.size());
  node.out("Out", node.unary(op, node.in("X"), {{"perm", perm}}));
}

void import_flatten(Node& node, Op op) {  // two axes are left
  node.out("Out", node.unary(op, node.in("X"), {{"axis", node.integer("axis", 1)}}));
}

void import_flatten_range(Node& node, Op op) {
  const ValueId x = node.in("X");
  const size_t rank = node.rank(x);
  if (rank == 0) return node.out("Out", node.b.reshape(x, {1}));
  const int64_t first = node.axis(node.integer("start_axis", 1), rank), last = node.axis(node.integer("stop_axis", -1), rank);
  if (first > last) return node.corrupt("flatten of an empty range of axes");
  const auto end = static_cast<int64_t>(rank) - 1;
  if (first == 1 && last == end) return node.out("Out", node.unary(op, x, {{"axis", int64_t{1}}}));
  if (last == end) {
    List shape(static_cast<size_t>(first), 0);  // 0: as before
    shape.push_back(-1);
    return node.out("Out", node.b.reshape(x, shape));
  }
  const ValueId sizes = node.shape_of(x);
  std::vector<ValueId> parts{node.b.integers({-1}), node.b.slice(sizes, 0, last + 1, kToTheEnd)};
  if (first > 0) parts.insert(parts.begin(), node.b.slice(sizes, 0, 0, first));
  node.out("Out", node.b.add(Op::kReshape, {x, node.concat(parts, 0)}));
}

void import_squeeze(Node& node, Op /*op*/) {
  const ValueId x = node.in("X");
  const size_t rank = node.rank(x);
  const List given = node.known_list("axes|axis", "AxisTensor AxesTensorList Axis").value_or(List{});
  List axes, open;
  for (size_t i = 0; given.empty() && i < rank; ++i)
    if (node.b.size(x, i) == 1) axes.push_back(static_cast<int64_t>(i));
  for (const int64_t each : given) {
    const int64_t axis = node.axis(each, rank);
    const auto size = node.b.size(x, static_cast<size_t>(axis));
    if (size == 1) axes.push_back(axis);  // any other axis stays
    if (!size) open.push_back(axis);
  }
  // Of axes that the request decides the declared result says whether they stay: a program for one image at a time leaves out the batch.
  if (node.out_dtype("Out") != DType::kUndefined && node.out_dims("Out").size() + axes.size() + open.size() == rank)
    axes.insert(axes.end(), open.begin(), open.end());
  node.out("Out", axes.empty() ? x : node.b.squeeze(x, axes));
}

void import_unsqueeze(Node& node, Op /*op*/) {
  const auto axes = node.known_list("axes|axis", "AxesTensor AxesTensorList Axis");
  if (!axes) return node.corrupt("unsqueeze without axes");
  ValueId x = node.in("X");
  // One after another, each in the shape that the ones before have left.
  for (const int64_t axis : *axes)
    if (!node.b.error()) x = node.b.unsqueeze(x, {axis});
  node.out("Out", x);
}

void import_concat(Node& node, Op /*op*/) {
  const std::vector<ValueId>& parts = node.all("X");
  if (parts.empty()) return node.corrupt("concat of nothing");
  node.out("Out", node.concat(parts, node.known_integer("axis", "AxisTensor", 0)));
}

void import_stack(Node& node, Op /*op*/) {
  std::vector<ValueId> parts;
  for (const ValueId part : node.all("X")) parts.push_back(node.b.unsqueeze(part, {node.integer("axis", 0)}));
  if (parts.empty()) return node.corrupt("stack of nothing");
  const ValueId all = node.concat(parts, node.integer("axis", 0));
  node.out("Y", all);
  node.out("Out", all);
}

void import_split(Node& node, Op op) {
  const ValueId x = node.in("X");
  const int64_t axis = node.axis(node.known_integer("axis", "AxisTensor", 0), node.rank(x));
  const size_t count = node.out_count("Out");
  const auto size = node.b.size(x, static_cast<size_t>(axis));
  const bool equal = node.integer("num", 0) > 0;
  const ValueId given = equal ? kNone : node.list("sections", "SectionsTensorList");
  if (given == kNone && size && count != 0 && *size % static_cast<int64_t>(count) != 0)
    return node.corrupt(fmt::format("a split of {} into {} equal parts", *size, count));
  if (given != kNone && node.b.size(given, 0) != static_cast<int64_t>(count))
    return node.corrupt("a split with another number of parts than results");
  if (count == 1) return node.out("Out", x);
  if (given == kNone) {
    Attributes attributes{{"axis", axis}};
    if (size) attributes.emplace("split", List(count, *size / static_cast<int64_t>(count)));
    return node.outs("Out", node.b.add_with_results(op, count, {x}, std::move(attributes)));
  }
  auto sections = node.b.known_integers(given);
  if (!sections) return node.outs("Out", node.b.add_with_results(op, count, {x, given}, {{"axis", axis}}));
  const auto open = std::ranges::find(*sections, -1);
  if (open == sections->end() || size) {
    if (open != sections->end()) *open = *size - (std::accumulate(sections->begin(), sections->end(), int64_t{0}) + 1);
    return node.outs("Out", node.b.add_with_results(op, count, {x}, {{"axis", axis}, {"split", *sections}}));
  }
  // What the other parts leave, which the request decides.
  const auto others = std::accumulate(sections->begin(), sections->end(), int64_t{0}) + 1;
  const auto place = open - sections->begin();
  std::vector<ValueId> sizes;
  if (place > 0) sizes.push_back(node.b.integers({sections->begin(), open}));
  sizes.push_back(node.binary(Op::kSub, node.size_of(x, axis), node.b.integers({others})));
  if (open + 1 != sections->end()) sizes.push_back(node.b.integers({open + 1, sections->end()}));
  node.outs("Out", node.b.add_with_results(op, count, {x, node.concat(sizes, 0)}, {{"axis", axis}}));
}

/// unstack, unbind: slices along an axis, without it.
void import_unstack(Node& node, Op op) {
  const ValueId x = node.in("X");
  const int64_t axis = node.axis(node.integer("axis", 0), node.rank(x));
  const std::string_view slot = node.out_count("Y") > 0 ? "Y" : "Out";
  const size_t count = node.out_count(slot);
  std::vector<ValueId> parts{x};
  if (count == 0) return node.corrupt("unstack without results");
  if (count > 1) parts = node.b.add_with_results(op, count, {x}, {{"axis", axis}, {"split", List(count, 1)}});
  for (ValueId& part : parts) part = node.b.squeeze(part, {axis});
  node.outs(slot, parts);
}

void import_slice(Node& node, Op op) {
  if (reads_array(node)) return;
  ValueId x = node.in("Input");
  const auto axes = node.integers("axes");
  const ValueId starts = node.list("starts", "StartsTensor StartsTensorList"), ends = node.list("ends", "EndsTensor EndsTensorList");
  const ValueId strides = node.list("strides", "StridesTensor StridesTensorList");
  if (!axes || starts == kNone || ends == kNone) return node.corrupt("slice without axes, starts or ends");
  const auto known_starts = node.b.known_integers(starts), known_ends = node.b.known_integers(ends);
  const auto known_strides = strides == kNone ? std::optional(List(axes->size(), 1)) : node.b.known_integers(strides);
  if (!known_strides) return node.refuse("a slice whose strides are computed");
  if (known_starts && known_ends) {
    List last = *known_ends;
    // With a stride below 0, -1 is the place before the first element, not the last one.
    for (size_t i = 0; i < std::min(last.size(), known_strides->size()); ++i)
      if ((*known_strides)[i] < 0 && last[i] == -1) last[i] = std::numeric_limits<int64_t>::min();
    Attributes attributes{{"starts", *known_starts}, {"ends", last}, {"axes", *axes}};
    if (strides != kNone) attributes.emplace("steps", *known_strides);
    x = node.unary(op, x, std::move(attributes));
  } else {
    x = node.b.add(op, {x, starts, ends, node.b.integers(*axes), strides == kNone ? kNone : node.b.integers(*known_strides)});
  }
  if (const auto gone = node.integers("decrease_axis"); gone && !gone->empty()) x = node.b.squeeze(x, *gone);
  node.out("Out", x);
}

void import_crop(Node& node, Op op) {
  const auto shape = node.known_list("shape", "Shape ShapeTensor"), offsets = node.known_list("offsets", "Offsets OffsetsTensor");
  if (!shape || !offsets || shape->size() != offsets->size()) return node.corrupt("crop without a shape and offsets");
  List axes(shape->size()), ends(shape->size());
  std::iota(axes.begin(), axes.end(), 0);
  for (size_t i = 0; i < ends.size(); ++i) ends[i] = (*shape)[i] < 0 ? kToTheEnd : (*offsets)[i] + (*shape)[i];
  node.out("Out", node.unary(op, node.in("X"), {{"starts", *offsets}, {"ends", ends}, {"axes", axes}}));
}

/// Sizes for Expand: -1 means as before, which a size of 1 does as well. A size that is a symbol is none of them.
ValueId expanded_sizes(Node& node, ValueId sizes) {
  const graph::Dims* const known = node.b.elements(sizes);
  if (!known) return node.binary(Op::kMax, sizes, node.b.integers({1}));
  std::vector<ValueId> parts;
  List numbers;
  for (size_t i = 0; i < known->size(); ++i) {
    const auto number = (*known)[i].value();
    numbers.push_back(number && *number < 0 ? 1 : number.value_or(0));
  }
  if (std::ranges::all_of(*known, [](const graph::Dim& dim) { return dim.known(); })) return node.b.integers(numbers);
  const std::vector<graph::Dim> dims(known->begin(), known->end());  // adding nodes may move the elements
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    parts.push_back(dims[i].known() ? node.b.integers({numbers[i]}) : node.b.slice(sizes, 0, place, place + 1));
  }
  return node.concat(parts, 0);
}

void import_expand(Node& node, Op op) {
  const ValueId sizes = node.list("shape", "Shape expand_shapes_tensor");
  if (sizes == kNone) return node.corrupt("expand without a shape");
  node.out("Out", node.binary(op, node.in("X"), expanded_sizes(node, sizes)));
}

void import_expand_as(Node& node, Op op) {
  const ValueId like = node.maybe("Y");
  const auto shape = node.integers("target_shape");
  if (like == kNone && !shape) return node.corrupt("expand_as without a shape");
  List sizes = shape.value_or(List{});
  for (int64_t& size : sizes) size = size < 0 ? 1 : size;
  node.out("Out", node.binary(op, node.in("X"), like == kNone ? node.b.integers(sizes) : node.shape_of(like)));
}

void import_tile(Node& node, Op op) {
  ValueId x = node.in("X");
  ValueId times = node.list("repeat_times|expand_times", "RepeatTimes repeat_times_tensor ExpandTimes");
  if (times == kNone) return node.corrupt("tile without a number of times");
  const auto count = node.b.size(times, 0);
  if (!count) return node.refuse("tile whose number of axes is computed");
  const size_t rank = node.rank(x), wanted = static_cast<size_t>(*count);
  if (wanted < rank) times = node.concat({node.b.integers(List(rank - wanted, 1)), times}, 0);
  if (wanted > rank) {
    List axes(wanted - rank);
    std::iota(axes.begin(), axes.end(), 0);
    x = node.b.unsqueeze(x, axes);
  }
  node.out("Out", node.binary(op, x, times));
}

/// All in the shape that they have together.
void import_broadcast(Node& node, Op op) {
  std::vector<ValueId> all = node.all("X");
  size_t rank = 0;
  for (const ValueId x : all) rank = std::max(rank, node.rank(x));
  ValueId shape = kNone;
  for (ValueId& x : all) {
    List axes(rank - node.rank(x));
    std::iota(axes.begin(), axes.end(), 0);
    if (!axes.empty()) x = node.b.unsqueeze(x, axes);
    const ValueId own = node.shape_of(x), one = node.b.integers({1});
    shape = shape == kNone ? own : node.b.add(Op::kWhere, {node.binary(Op::kEqual, shape, one), own, shape});
  }
  for (ValueId& x : all) x = node.binary(op, x, shape);
  node.outs("Out", all);
}

/// Each element so many times: a new axis, repeated, and flattened.
void import_repeat(Node& node, Op op) {
  const ValueId x = node.in("X");
  const size_t rank = node.rank(x);
  const int64_t axis = node.axis(node.integer("dim|axis", 0), rank), times = node.integer("Repeats|repeats", 1);
  if (node.b.error()) return;
  List repeats(rank + 1, 1);
  repeats[static_cast<size_t>(axis) + 1] = times;
  const ValueId wide = node.binary(op, node.b.unsqueeze(x, {axis + 1}), node.b.integers(repeats));
  List shape(static_cast<size_t>(axis), 0);
  shape.push_back(-1);
  const ValueId front = node.b.integers(shape);
  const bool last = axis + 1 == static_cast<int64_t>(rank);
  node.out("Out", node.b.add(Op::kReshape,
                             {wide, last ? front : node.concat({front, node.b.slice(node.shape_of(x), 0, axis + 1, kToTheEnd)}, 0)}));
}

void import_flip(Node& node, Op op) {
  const auto axes = node.known_list("axis", "Axis");
  if (!axes) return node.corrupt("flip without axes");
  const List last(axes->size(), -1);
  node.out(
      "Out",
      node.unary(op, node.in("X"),
                 {{"starts", last}, {"ends", List(axes->size(), std::numeric_limits<int64_t>::min())}, {"axes", *axes}, {"steps", last}}));
}

/// x[-s:], x[:-s] along each axis.
void import_roll(Node& node, Op /*op*/) {
  ValueId x = node.in("X");
  const auto shifts = node.known_list("shifts", "ShiftsTensor");
  List axes = node.integers("axis").value_or(List{});
  const ValueId sizes = node.shape_of(x);
  const bool flat = axes.empty();
  if (flat) x = node.b.reshape(x, {-1}), axes = {0};
  if (!shifts || shifts->size() != axes.size()) return node.corrupt("roll with another number of shifts than axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = node.axis(axes[i], node.rank(x));
    const auto size = node.b.size(x, static_cast<size_t>(axis));
    const int64_t shift = size && *size > 0 ? (*shifts)[i] % *size : (*shifts)[i];
    if (shift == 0) continue;
    x = node.concat({node.b.slice(x, axis, -shift, kToTheEnd), node.b.slice(x, axis, 0, -shift)}, axis);
  }
  node.out("Out", flat ? node.b.add(Op::kReshape, {x, sizes}) : x);
}

/// Begins and ends of each axis; `pairs` is (begin, end) of the axes in `axes`.
void emit_pad(Node& node, ValueId x, const List& axes, const List& pairs, std::string mode, std::optional<double> value) {
  const size_t rank = node.rank(x);
  if (pairs.size() != 2 * axes.size() || !value) return node.refuse("a padding that is computed, or of another number of axes");
  List pads(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(node.axis(axes[i], rank));
    if (node.b.error()) return;
    pads[axis] = pairs[2 * i], pads[rank + axis] = pairs[2 * i + 1];
  }
  if (mode == "replicate") mode = "edge";
  if (mode == "circular") mode = "wrap";
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") return node.corrupt("padding of mode '" + mode + "'");
  Attributes attributes{{"pads", pads}, {"mode", mode}};
  if (mode == "constant" && *value != 0) attributes.emplace("value", *value);
  node.out("Out", node.unary(Op::kPad, x, std::move(attributes)));
}

/// pad3d: the last axis first (left, right, top, bottom, front, back). pad2d: top, bottom, left, right.
void import_pad_image(Node& node, Op /*op*/) {
  const ValueId x = node.in("X");
  const bool volume = node.source().type == "pad3d", last = node.text("data_format", "NCHW").ends_with('C');
  const int64_t first = last ? 1 : 2;
  const List axes = volume ? List{first + 2, first + 1, first} : List{first, first + 1};
  const List pairs = node.known_list("paddings", "Paddings").value_or(List{});
  emit_pad(node, x, axes, pairs, node.text("mode", "constant"), node.number("value|pad_value", 0));
}

void import_pad(Node& node, Op /*op*/) {
  const ValueId x = node.in("X");
  List axes(node.rank(x));
  std::iota(axes.begin(), axes.end(), 0);
  emit_pad(node, x, axes, node.known_list("paddings", "Paddings").value_or(List{}), "constant",
           node.known_number("pad_value", "PadValue", 0));
}

constexpr OperatorRow kMovementRows[] = {
    {"concat", "concat", "X AxisTensor", "Out", import_concat},
    {"crop_tensor crop", "crop", "X Shape Offsets", "Out", import_crop, Op::kSlice},
    {"broadcast_tensors", "broadcast_tensors", "X", "Out", import_broadcast, Op::kExpand},
    {"expand", "", "X", "Out", import_tile, Op::kTile},
    {"expand_as_v2", "expand_as", "X Y", "Out", import_expand_as, Op::kExpand},
    {"expand_v2", "expand", "X Shape", "Out", import_expand, Op::kExpand},
    {"flatten flatten2", "", "X", "Out", import_flatten, Op::kFlatten},
    {"flatten_contiguous_range", "flatten", "X", "Out", import_flatten_range, Op::kFlatten},
    {"flip", "flip reverse", "X Axis", "Out", import_flip, Op::kSlice},
    {"pad", "pad", "X PadValue", "Out", import_pad},
    {"pad3d pad2d", "pad3d", "X Paddings", "Out", import_pad_image},
    {"repeat_interleave", "repeat_interleave", "X", "Out", import_repeat, Op::kTile},
    {"reshape reshape2", "reshape view_shape", "X Shape", "Out", import_reshape, Op::kReshape},
    {"roll", "roll", "X ShiftsTensor", "Out", import_roll},
    {"set_value", "set_value", "Input StartsTensorList EndsTensorList StepsTensorList", "Out", import_set_value},
    {"", "set_value_with_tensor", "Input ValueTensor StartsTensorList EndsTensorList StepsTensorList", "Out", import_set_value},
    {"slice strided_slice", "slice strided_slice", "Input StartsTensor EndsTensor StridesTensor", "Out", import_slice, Op::kSlice},
    {"split", "split", "X SectionsTensorList AxisTensor", "Out", import_split, Op::kSplit},
    {"", "split_with_num", "X AxisTensor", "Out", import_split, Op::kSplit},
    {"squeeze squeeze2", "squeeze", "X Axis", "Out", import_squeeze},
    {"stack", "stack", "X", "Y", import_stack},
    {"tile", "tile", "X RepeatTimes", "Out", import_tile, Op::kTile},
    {"transpose transpose2", "transpose", "X", "Out", import_transpose, Op::kTranspose},
    {"unsqueeze unsqueeze2", "unsqueeze", "X Axis", "Out", import_unsqueeze},
    {"unstack unbind", "unstack unbind", "X", "Out", import_unstack, Op::kSplit},
};

}  // namespace

std::span<const OperatorRow> movement_operators() { return kMovementRows; }

}  // namespace serin::formats::paddle
