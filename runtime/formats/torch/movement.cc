// movement.cc: other shapes of the same elements, and moves of elements. Axes count from the end if they are negative.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::Attributes;
using graph::kNone;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

void import_identity(NodeImport& node, Op) { node.give(node.has("self") ? node.tensor("self") : node.tensor("input")); }

/// A shape of which at most one size is open needs no computation: Reshape finds that one.
ValueId reshaped(NodeImport& node, ValueId x, std::vector<Size> sizes) {
  const auto open = [](const Size& size) { return !size.number; };
  const bool inferred = std::ranges::any_of(sizes, [](const Size& size) { return size.number == -1; });
  const bool empty = std::ranges::any_of(sizes, [](const Size& size) { return size.number == 0; });
  if (!inferred && !empty && std::ranges::count_if(sizes, open) == 1) std::ranges::find_if(sizes, open)->number = -1;
  const bool computed = std::ranges::any_of(sizes, open);
  return node.b.add(Op::kReshape, {x, node.shape_of(sizes)}, empty || computed ? Attributes{{"allowzero", int64_t{1}}} : Attributes{});
}

/// Whether a view keeps the first axis and joins all others: flatten(1), in the core spelling.
bool joins_all_but_first(NodeImport& node, ValueId x, const std::vector<Size>& sizes) {
  const size_t rank = node.rank(x);
  if (sizes.size() != 2 || rank < 3 || !sizes[1].number) return false;
  int64_t rest = 1;
  for (size_t i = 1; i < rank; ++i) {
    const auto length = node.b.size(x, i);
    if (!length || *length < 1 || rest > (int64_t{1} << 40) / *length) return false;
    rest *= *length;
  }
  return rest == *sizes[1].number && !node.b.size(x, 0);
}

void import_view(NodeImport& node, Op) {
  if (node.has("dtype")) return node.unsupported("reads the bits as another type");
  const ValueId x = node.tensor("self");
  const std::vector<Size> sizes = node.sizes(node.has("size") ? "size" : "shape");
  node.give(joins_all_but_first(node, x, sizes) ? node.b.add(Op::kFlatten, {x}, {{"axis", int64_t{1}}}) : reshaped(node, x, sizes));
}

void import_view_as(NodeImport& node, Op op) {
  const ValueId like = node.b.add(Op::kShape, {node.tensor("other")});
  node.give(node.b.add(op, {node.tensor("self"), like}));
}

/// The sizes of an axis range of x, as numbers or as the model computes them.
std::vector<Size> sizes_of(NodeImport& node, ValueId x, size_t begin, size_t end) {
  std::vector<Size> sizes;
  for (size_t i = begin; i < end; ++i) {
    const auto number = node.b.size(x, i);
    sizes.push_back(number ? Size{number, kNone} : Size{std::nullopt, node.sized(x, i)});
  }
  return sizes;
}

void import_flatten(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  const auto first = static_cast<size_t>(node.axis(node.integer("start_dim", 0), rank)),
             last = static_cast<size_t>(node.axis(node.integer("end_dim", -1), rank));
  if (rank == 0) return node.give(node.b.reshape(x, {1}));
  if (first > last) return node.corrupt("flattens axes that end before they begin");
  if (first == 1 && last == rank - 1) return node.give(node.b.add(Op::kFlatten, {x}, {{"axis", int64_t{1}}}));
  std::vector<Size> sizes = sizes_of(node, x, 0, first);
  sizes.push_back({-1, kNone});
  for (const Size& size : sizes_of(node, x, last + 1, rank)) sizes.push_back(size);
  for (size_t i = 0; i < first; ++i)
    if (!sizes[i].number) sizes[i] = {0, kNone};  // as it is
  node.give(node.b.add(Op::kReshape, {x, node.shape_of(sizes)}));
}

void import_unflatten(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  const auto dim = static_cast<size_t>(node.axis(node.integer("dim", 0), rank));
  std::vector<Size> sizes = sizes_of(node, x, 0, dim);
  for (const Size& size : node.sizes("sizes")) sizes.push_back(size);
  for (const Size& size : sizes_of(node, x, dim + 1, rank)) sizes.push_back(size);
  node.give(reshaped(node, x, sizes));
}

void import_permute(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  node.give(node.b.transpose(x, node.axes("dims", node.rank(x))));
}

List order_of(size_t rank) {
  List order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// transpose, t, swapaxes, numpy_T.
void import_transpose(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  List order = order_of(rank);
  if (node.has("dim0") || node.has("axis0")) {
    const bool dims = node.has("dim0");
    const int64_t a = node.axis(node.integer(dims ? "dim0" : "axis0", 0), rank),
                  b = node.axis(node.integer(dims ? "dim1" : "axis1", 0), rank);
    if (rank > 0) std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  } else {
    std::ranges::reverse(order);
  }
  node.give(rank < 2 ? x : node.b.transpose(x, order));
}

void import_movedim(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  const List from = node.axes("source", rank), to = node.axes("destination", rank);
  List order(rank, -1), rest;
  if (from.size() != to.size() || rank == 0) return node.corrupt("moves axes to another number of places");
  for (size_t i = 0; i < from.size(); ++i) order[static_cast<size_t>(to[i])] = from[i];
  for (const int64_t axis : order_of(rank))
    if (std::ranges::find(from, axis) == from.end()) rest.push_back(axis);
  auto next = rest.begin();
  for (int64_t& place : order)
    if (place < 0 && next != rest.end()) place = *next++;
  node.give(node.b.transpose(x, order));
}

void import_unsqueeze(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  node.give(node.b.unsqueeze(x, {node.axis(node.integer("dim", 0), node.rank(x) + 1)}));
}

/// Removes those of the given axes, or of all, whose size is 1.
void import_squeeze(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  List axes = node.has("dim") ? node.axes("dim", rank) : order_of(rank);
  if (rank == 0) axes.clear();
  // Where the program declares that all of them go, those of computed sizes are 1, too.
  const bool all = node.has("dim") && node.meta(0) && node.meta(0)->sizes.size() + axes.size() == rank;
  if (!all) std::erase_if(axes, [&](int64_t axis) { return node.b.size(x, static_cast<size_t>(axis)) != 1; });
  node.give(axes.empty() ? x : node.b.squeeze(x, axes));
}

/// -1 keeps a size; new axes are in front.
void import_expand(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  if (node.has("other")) return node.give(expanded(node, x, node.b.add(Op::kShape, {node.tensor("other")})));
  std::vector<Size> sizes = node.sizes(node.has("size") ? "size" : "shape");
  for (Size& size : sizes)
    if (size.number == -1) size.number = 1;  // broadcasting keeps the size of x
  node.give(expanded(node, x, node.shape_of(sizes)));
}

void import_repeat(NodeImport& node, Op) {
  ValueId x = node.tensor("self");
  std::vector<Size> repeats = node.sizes(node.has("repeats") ? "repeats" : "dims");
  const size_t rank = node.rank(x);
  while (repeats.size() < rank) repeats.insert(repeats.begin(), Size{1, kNone});
  if (repeats.size() > rank) {
    List axes = order_of(repeats.size() - rank);
    x = node.b.unsqueeze(x, axes);
  }
  node.give(node.b.add(Op::kTile, {x, node.shape_of(repeats)}));
}

/// Each element `repeats` times, side by side.
void import_repeat_interleave(NodeImport& node, Op) {
  ValueId x = node.tensor("self");
  if (node.is_tensor("repeats")) return node.unsupported("repeats by a tensor");
  const int64_t repeats = node.integer("repeats", 1);
  if (!node.has("dim")) x = node.b.reshape(x, {-1});
  const size_t rank = node.rank(x);
  const auto dim = static_cast<size_t>(node.has("dim") ? node.axis(node.integer("dim", 0), rank) : 0);
  List tiles(rank + 1, 1);
  tiles[dim + 1] = repeats;
  const ValueId tiled = node.b.add(Op::kTile, {node.b.unsqueeze(x, {static_cast<int64_t>(dim) + 1}), node.b.integers(tiles)});
  List shape(rank, 0);
  shape[dim] = -1;
  if (dim + 1 >= rank) return node.give(node.b.reshape(tiled, shape));
  std::vector<Size> sizes = sizes_of(node, x, 0, rank);
  sizes[dim] = {-1, kNone};
  node.give(node.b.add(Op::kReshape, {tiled, node.shape_of(sizes)}));
}

void import_cat(NodeImport& node, Op op) {
  std::vector<ValueId> parts = node.tensors("tensors");
  std::erase_if(parts, [&](ValueId part) {
    return node.b.rank(part) == 1 && node.b.size(part, 0) == 0 && node.meta(0) && node.meta(0)->sizes.size() != 1;
  });
  if (parts.empty()) return node.corrupt("joins nothing");
  for (ValueId& part : parts) part = node.b.cast(part, node.result_dtype());
  const int64_t axis = node.axis(node.integer("dim", 0), node.rank(parts[0]));
  node.give(node.b.add(op, parts, {{"axis", axis}}));
}

void import_stack(NodeImport& node, Op op) {
  std::vector<ValueId> parts = node.tensors("tensors");
  if (parts.empty()) return node.corrupt("joins nothing");
  const int64_t axis = node.axis(node.integer("dim", 0), node.rank(parts[0]) + 1);
  for (ValueId& part : parts) part = node.b.unsqueeze(node.b.cast(part, node.result_dtype()), {axis});
  node.give(node.b.add(op, parts, {{"axis", axis}}));
}

void give_split(NodeImport& node, ValueId x, int64_t axis, const List& sizes) {
  if (sizes.empty()) return node.corrupt("splits into nothing");
  node.give(node.b.add_with_results(Op::kSplit, sizes.size(), {x}, {{"axis", axis}, {"split", sizes}}));
}

/// Parts of `each` elements; the last has the rest.
void give_parts(NodeImport& node, ValueId x, int64_t axis, int64_t length, int64_t each) {
  constexpr int64_t kMostParts = 100'000;
  if (each <= 0 || (length + each - 1) / each > kMostParts)
    return node.corrupt(fmt::format("splits {} elements into parts of {}", length, each));
  List sizes;
  for (int64_t done = 0; done < length; done += each) sizes.push_back(std::min(each, length - done));
  give_split(node, x, axis, sizes);
}

void import_split(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const int64_t axis = node.axis(node.integer("dim", 0), node.rank(x));
  const bool list = node.has("split_sizes");
  if (list || node.overload() == "sizes") return give_split(node, x, axis, node.integers(list ? "split_sizes" : "split_size"));
  const auto length = node.b.size(x, static_cast<size_t>(axis));
  if (!length) return node.unsupported("splits an axis of unknown length");
  if (!node.has("chunks")) return give_parts(node, x, axis, *length, node.integer("split_size", 1));
  const int64_t chunks = node.integer("chunks", 1);
  if (chunks < 1) return node.corrupt(fmt::format("splits into {} parts", chunks));
  give_parts(node, x, axis, *length, std::max<int64_t>(1, (*length - 1) / chunks + 1));
}

void import_unbind(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const int64_t axis = node.axis(node.integer("dim", 0), node.rank(x));
  const auto length = node.b.size(x, static_cast<size_t>(axis));
  if (!length) return node.unsupported("splits an axis of unknown length");
  give_parts(node, x, axis, *length, 1);
  std::vector<ValueId> parts = node.results();
  for (ValueId& part : parts) part = node.b.squeeze(part, {axis});
  node.give(parts);
}

ValueId sliced_by(NodeImport& node, ValueId x, int64_t axis, const Size& begin, const Size& end, int64_t step) {
  if (begin.number && end.number) return sliced(node.b, x, axis, *begin.number, *end.number, step);
  return node.b.add(Op::kSlice, {x, node.shape_of({begin}), node.shape_of({end}), node.b.integers({axis}), node.b.integers({step})});
}

void import_slice(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const int64_t axis = node.axis(node.integer("dim", 0), node.rank(x)), step = node.integer("step", 1);
  if (step < 1) return node.corrupt(fmt::format("a step of {}", step));
  const Size begin = node.size("start", 0), end = node.size("end", kEnd);
  const auto length = node.b.size(x, static_cast<size_t>(axis));
  const bool all = begin.number == 0 && step == 1 && end.number && (*end.number == kEnd || (length && *end.number >= *length));
  node.give(all ? x : sliced_by(node, x, axis, begin, end, step));
}

void import_narrow(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const int64_t axis = node.axis(node.integer("dim", 0), node.rank(x));
  const Size begin = node.size("start", 0), length = node.size("length", 0);
  if (begin.number && length.number) return node.give(sliced(node.b, x, axis, *begin.number, *begin.number + *length.number));
  node.give(sliced_by(node, x, axis, begin, {std::nullopt, node.b.add(Op::kAdd, {node.scalar(begin), node.scalar(length)})}, 1));
}

void import_select(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const int64_t axis = node.axis(node.integer("dim", 0), node.rank(x));
  node.give(node.b.add(Op::kGather, {x, node.scalar(node.size("index", 0))}, {{"axis", axis}}));
}

void import_flip(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const List axes = node.axes("dims", node.rank(x));
  const List backwards(axes.size(), -1);
  node.give(node.b.add(Op::kSlice, {x}, {{"starts", backwards}, {"ends", List(axes.size(), -kEnd)}, {"axes", axes}, {"steps", backwards}}));
}

/// The last `shift` elements come first.
void import_roll(NodeImport& node, Op) {
  ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  const List shifts = node.integers("shifts"), axes = node.axes("dims", rank);
  if (shifts.size() != axes.size()) return node.unsupported("rolls without axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto length = node.b.size(x, static_cast<size_t>(axes[i]));
    if (length == 0) continue;
    if (!length && (shifts[i] > 1 << 20 || shifts[i] < -(1 << 20))) return node.unsupported("rolls an axis of unknown length far");
    const int64_t cut = length ? -(((shifts[i] % *length) + *length) % *length) : -shifts[i];
    if (cut == 0) continue;
    const ValueId first = sliced(node.b, x, axes[i], cut, kEnd), last = sliced(node.b, x, axes[i], 0, cut);
    x = node.b.add(Op::kConcat, {first, last}, {{"axis", axes[i]}});
  }
  node.give(x);
}

/// torch lists (begin, end) from the last axis backwards.
void import_pad(NodeImport& node, Op op) {
  const ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  const std::string target = node.node().target;
  const bool reflect = target.find("reflection_pad") != std::string::npos, edge = target.find("replication_pad") != std::string::npos;
  std::string mode = node.text("mode", reflect ? "reflect" : edge ? "replicate" : "constant");
  if (mode == "replicate") mode = "edge";
  if (mode == "circular") mode = "wrap";
  const std::vector<Size> amounts = node.sizes(node.has("pad") ? "pad" : "padding");
  if (amounts.size() % 2 != 0 || amounts.size() / 2 > rank)
    return node.corrupt(fmt::format("{} amounts for rank {}", amounts.size(), rank));
  std::vector<Size> pads(2 * rank, Size{0, kNone});
  for (size_t i = 0; i < amounts.size() / 2; ++i) {
    pads[rank - 1 - i] = amounts[2 * i];
    pads[2 * rank - 1 - i] = amounts[2 * i + 1];
  }
  Attributes attributes = {{"mode", mode}};
  if (const auto value = node.optional_number("value"); value && *value != 0) attributes.insert_or_assign("value", *value);
  if (std::ranges::any_of(pads, [](const Size& size) { return !size.number; }))
    return node.give(node.b.add(op, {x, node.shape_of(pads)}, attributes));
  List numbers;
  for (const Size& size : pads) numbers.push_back(*size.number);
  attributes.insert_or_assign("pads", numbers);
  node.give(node.b.add(op, {x}, attributes));
}

void import_pixel_shuffle(NodeImport& node, Op op) {
  const bool up = op == Op::kDepthToSpace;
  graph::Attributes attributes = {{"blocksize", node.integer(up ? "upscale_factor" : "downscale_factor", 1)}};
  if (up) attributes.insert_or_assign("mode", std::string("CRD"));
  node.give(node.b.add(op, {node.tensor("self")}, attributes));
}

/// Channels c * r^2 of torch are [c, r, r]; SpaceToDepth orders them [r, r, c].
void import_pixel_unshuffle(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const int64_t factor = node.integer("downscale_factor", 1);
  const auto channels = node.b.size(x, 1), height = node.b.size(x, 2), width = node.b.size(x, 3);
  if (node.rank(x) != 4 || !channels || !height || !width || factor < 1) return node.unsupported("unshuffles pixels of unknown size");
  const ValueId parts = node.b.reshape(x, {0, *channels, *height / factor, factor, *width / factor, factor});
  const ValueId moved = node.b.transpose(parts, {0, 1, 3, 5, 2, 4});
  node.give(node.b.reshape(moved, {0, *channels * factor * factor, *height / factor, *width / factor}));
}

void import_channel_shuffle(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const int64_t groups = node.integer("groups", 1);
  const auto channels = node.b.size(x, 1), height = node.b.size(x, 2), width = node.b.size(x, 3);
  if (node.rank(x) != 4 || !channels || !height || !width || groups < 1) return node.unsupported("shuffles channels of unknown size");
  const ValueId parts = node.b.transpose(node.b.reshape(x, {0, groups, *channels / groups, *height, *width}), {0, 2, 1, 3, 4});
  node.give(node.b.reshape(parts, {0, *channels, *height, *width}));
}

/// Windows of `size` along an axis, each a new last axis.
void import_unfold(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  const auto axis = static_cast<size_t>(node.axis(node.integer("dimension", 0), rank));
  const int64_t size = node.integer("size", 1), step = node.integer("step", 1);
  const auto length = node.b.size(x, axis);
  constexpr int64_t kMostIndices = 1 << 24;
  if (!length || size < 1 || step < 1 || size > *length || ((*length - size) / step + 1) * size > kMostIndices)
    return node.unsupported("windows of an axis of unknown length, or too many");
  const int64_t windows = (*length - size) / step + 1;
  List places;
  for (int64_t window = 0; window < windows; ++window)
    for (int64_t i = 0; i < size; ++i) places.push_back(window * step + i);
  const ValueId indices = node.b.constant(graph::make_constant(DType::kInt64, Shape{windows, size}, places.data()));
  List order = order_of(rank + 1);
  order.erase(order.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
  order.push_back(static_cast<int64_t>(axis) + 1);
  node.give(node.b.transpose(node.b.add(Op::kGather, {x, indices}, {{"axis", static_cast<int64_t>(axis)}}), order));
}

/// as_strided to sizes whose strides are those of dense elements: a view, as contiguous() decomposes to.
void import_strided(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const std::vector<Size> sizes = node.sizes("size"), strides = node.sizes("stride");
  const graph::Dims* const dims = node.b.dims(x) ? &*node.b.dims(x) : nullptr;
  const TensorMeta* const declared = node.meta(0);
  if (!dims || !declared || sizes.size() != strides.size() || declared->sizes.size() != sizes.size() ||
      node.integer("storage_offset", 0) != 0)
    return node.unsupported("reads elements with strides");
  graph::Dim all = 1, kept = 1;
  for (const graph::Dim& dim : *dims) all = all * dim;
  for (size_t i = sizes.size(); i-- > 0;) {
    const graph::Dim& size = declared->sizes[i];
    if (size.value() != 1 && (!strides[i].number || kept.value() != strides[i].number))
      return node.unsupported("reads elements with strides");
    kept = kept * size;
  }
  if (!(kept == all)) return node.unsupported("reads a part of the elements with strides");
  node.give(reshaped(node, x, sizes));
}

/// One tensor for each vector: its elements along one axis, repeated along the others.
void import_meshgrid(NodeImport& node, Op) {
  const std::vector<ValueId> vectors = node.tensors("tensors");
  const bool swapped = node.text("indexing", "ij") == "xy" && vectors.size() > 1;
  std::vector<Size> sizes;
  for (const ValueId vector : vectors) sizes.push_back(node.rank(vector) == 0 ? Size{1, kNone} : sizes_of(node, vector, 0, 1)[0]);
  if (vectors.empty()) return node.corrupt("a grid of nothing");
  if (swapped) std::swap(sizes[0], sizes[1]);
  const ValueId shape = node.shape_of(sizes);
  std::vector<ValueId> grids;
  for (size_t i = 0; i < vectors.size(); ++i) {
    const size_t axis = swapped && i < 2 ? 1 - i : i;
    List column(vectors.size(), 1);
    column[axis] = -1;
    grids.push_back(expanded(node, node.b.reshape(vectors[i], column), shape));
  }
  node.give(grids);
}

constexpr OperatorRow kMovement[] = {
    {"aten._unsafe_view", import_view, Op::kReshape, Alias::kMaybe},
    {"aten.alias", import_identity, Op::kIdentity, Alias::kView},
    {"aten.as_strided", import_strided},
    {"aten.cat", import_cat, Op::kConcat},
    {"aten.channel_shuffle", import_channel_shuffle},
    {"aten.chunk", import_split, Op::kSplit, Alias::kView},
    {"aten.clone", import_identity, Op::kIdentity},
    {"aten.concat", import_cat, Op::kConcat},
    {"aten.constant_pad_nd", import_pad, Op::kPad},
    {"aten.contiguous", import_identity, Op::kIdentity, Alias::kMaybe},
    {"aten.detach", import_identity, Op::kIdentity, Alias::kView},
    {"aten.expand", import_expand, Op::kExpand, Alias::kView},
    {"aten.expand_as", import_expand, Op::kExpand, Alias::kView},
    {"aten.flatten", import_flatten, Op::kReshape, Alias::kMaybe},
    {"aten.flip", import_flip, Op::kSlice},
    {"aten.lift_fresh_copy", import_identity, Op::kIdentity},
    {"aten.meshgrid", import_meshgrid},
    {"aten.movedim", import_movedim, Op::kTranspose, Alias::kView},
    {"aten.narrow", import_narrow, Op::kSlice, Alias::kView},
    {"aten.numpy_T", import_transpose, Op::kTranspose, Alias::kView},
    {"aten.pad", import_pad, Op::kPad},
    {"aten.permute", import_permute, Op::kTranspose, Alias::kView},
    {"aten.pixel_shuffle", import_pixel_shuffle, Op::kDepthToSpace},
    {"aten.pixel_unshuffle", import_pixel_unshuffle},
    {"aten.reflection_pad1d", import_pad, Op::kPad},
    {"aten.reflection_pad2d", import_pad, Op::kPad},
    {"aten.repeat", import_repeat, Op::kTile},
    {"aten.repeat_interleave", import_repeat_interleave},
    {"aten.replication_pad1d", import_pad, Op::kPad},
    {"aten.replication_pad2d", import_pad, Op::kPad},
    {"aten.reshape", import_view, Op::kReshape, Alias::kMaybe},
    {"aten.reshape_as", import_view_as, Op::kReshape, Alias::kMaybe},
    {"aten.roll", import_roll},
    {"aten.select", import_select, Op::kGather, Alias::kView},
    {"aten.slice", import_slice, Op::kSlice, Alias::kView},
    {"aten.split", import_split, Op::kSplit, Alias::kView},
    {"aten.split_with_sizes", import_split, Op::kSplit, Alias::kView},
    {"aten.squeeze", import_squeeze, Op::kSqueeze, Alias::kView},
    {"aten.stack", import_stack, Op::kConcat},
    {"aten.swapaxes", import_transpose, Op::kTranspose, Alias::kView},
    {"aten.t", import_transpose, Op::kTranspose, Alias::kView},
    {"aten.tile", import_repeat, Op::kTile},
    {"aten.transpose", import_transpose, Op::kTranspose, Alias::kView},
    {"aten.unbind", import_unbind, Op::kSplit, Alias::kView},
    {"aten.unflatten", import_unflatten, Op::kReshape, Alias::kView},
    {"aten.unfold", import_unfold, Op::kGather, Alias::kView},
    {"aten.unsqueeze", import_unsqueeze, Op::kUnsqueeze, Alias::kView},
    {"aten.view", import_view, Op::kReshape, Alias::kView},
    {"aten.view_as", import_view_as, Op::kReshape, Alias::kView},
};

}  // namespace

ValueId expanded(NodeImport& node, ValueId x, ValueId shape) { return node.b.add(Op::kExpand, {x, shape}); }

ValueId replaced(NodeImport& node, ValueId into, ValueId value, size_t axis, Size begin, Size end, int64_t step) {
  const auto at = static_cast<int64_t>(axis);
  const auto length = node.b.size(into, axis);
  if (step != 1 || !begin.number || !end.number || (!length && (*begin.number < 0 || *end.number < 0)))
    return node.unsupported("writes to places that are not known"), into;
  int64_t first = *begin.number, last = *end.number;
  if (length) {
    first = std::clamp<int64_t>(first < 0 ? first + *length : first, 0, *length);
    last = std::clamp<int64_t>(last < 0 ? last + *length : last, first, *length);
  }
  std::vector<ValueId> parts;
  if (first > 0) parts.push_back(sliced(node.b, into, at, 0, first));
  parts.push_back(value);
  if (!length ? last != kEnd : last < *length) parts.push_back(sliced(node.b, into, at, last, kEnd));
  return parts.size() == 1 ? value : node.b.add(Op::kConcat, parts, {{"axis", at}});
}

ValueId written_back(NodeImport& view, ValueId into, ValueId value) {
  const OperatorRow* const row = find_operator(view.node().target);
  const size_t rank = view.rank(into);
  switch (row->op) {
    case Op::kIdentity: return value;
    case Op::kReshape:
    case Op::kUnsqueeze:
    case Op::kSqueeze: return view.b.add(Op::kReshape, {value, view.b.add(Op::kShape, {into})});
    case Op::kSlice: {
      if (row->import != import_slice) break;
      const auto axis = static_cast<size_t>(view.axis(view.integer("dim", 0), rank));
      return replaced(view, into, value, axis, view.size("start", 0), view.size("end", kEnd), view.integer("step", 1));
    }
    case Op::kGather: {
      const auto index = view.size("index", 0).number;
      if (row->import != import_select || !index || *index == -1) break;
      const int64_t axis = view.axis(view.integer("dim", 0), rank);
      return replaced(view, into, view.b.unsqueeze(value, {axis}), static_cast<size_t>(axis), {*index, kNone}, {*index + 1, kNone}, 1);
    }
    case Op::kTranspose: {
      if (row->import != import_transpose) break;
      import_transpose(view, row->op);
      const graph::NodeId made = view.b.graph().producer(view.results()[0]);
      return view.b.transpose(value, view.b.graph().node(made).integers("perm"));
    }
    default: break;
  }
  view.unsupported("writes into a view that cannot be written to; export program.run_decompositions({})");
  return into;
}

std::span<const OperatorRow> movement_operators() { return kMovement; }

}  // namespace serin::formats::torch
