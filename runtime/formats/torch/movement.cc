// movement.cc: tensors joined, split, repeated, padded and shuffled.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::Attributes;
using graph::kNone;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

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

/// hstack, vstack, dstack, column_stack: `tensors`, with as many axes as a row, a matrix or a stack of matrices has, along one axis.
void import_stack_along(NodeImport& node, Op op) {
  std::vector<ValueId> parts = node.tensors("tensors");
  if (parts.empty()) return node.corrupt("joins nothing");
  const std::string& target = node.node().target;
  const bool columns = target.find("column_stack") != std::string::npos, high = target.find("vstack") != std::string::npos,
             deep = target.find("dstack") != std::string::npos;
  int64_t axis = high ? 0 : deep ? 2 : 1;
  for (ValueId& part : parts) {
    part = node.b.cast(part, node.result_dtype());
    const size_t rank = node.rank(part);
    if (rank == 0) part = node.b.reshape(part, {1});
    if (rank < 2 && columns) part = node.b.reshape(part, {-1, 1});
    if (rank < 2 && (high || deep)) part = node.b.unsqueeze(part, {0});
    if (rank < 3 && deep) part = node.b.unsqueeze(part, {2});
    if (rank < 2 && axis == 1 && !columns) axis = 0;
  }
  node.give(node.b.add(op, parts, {{"axis", axis}}));
}

void give_split(NodeImport& node, ValueId x, int64_t axis, const List& sizes) {
  if (sizes.empty()) return node.corrupt("splits into nothing");
  node.give(node.b.add_with_results(Op::kSplit, sizes.size(), {x}, {{"axis", axis}, {"split", sizes}}));
}

/// Parts of `each` elements; the last has the rest.
void give_parts(NodeImport& node, ValueId x, int64_t axis, int64_t length, int64_t each) {
  constexpr int64_t kMostParts = 100'000;
  if (each <= 0 || (length - 1) / each >= kMostParts) return node.corrupt(fmt::format("splits {} elements into parts of {}", length, each));
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

/// tensor_split, hsplit, vsplit: into a number of parts, of which the first have the rest, or at indices.
void import_sections(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  const std::string& target = node.node().target;
  const int64_t along = target.find("hsplit") != std::string::npos && rank > 1 ? 1 : 0;
  const int64_t axis = node.axis(node.integer("dim", along), rank);
  const auto length = node.b.size(x, static_cast<size_t>(axis));
  if (!length) return node.unsupported("splits an axis of unknown length");
  List sizes;
  if (node.has("indices")) {
    int64_t begin = 0;
    List ends = node.integers("indices");
    ends.push_back(*length);
    for (int64_t end : ends) {
      end = std::clamp<int64_t>(end < 0 ? end + *length : end, begin, *length);
      sizes.push_back(end - begin);
      begin = end;
    }
  } else {
    const int64_t sections = node.integer("sections", 1);
    constexpr int64_t kMost = 100'000;
    if (sections < 1 || sections > kMost) return node.corrupt(fmt::format("splits into {} parts", sections));
    for (int64_t i = 0; i < sections; ++i) sizes.push_back(*length / sections + (i < *length % sections ? 1 : 0));
  }
  give_split(node, x, axis, sizes);
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

void import_flip(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const List axes = node.axes("dims", node.rank(x));
  const List backwards(axes.size(), -1);
  node.give(node.b.add(Op::kSlice, {x}, {{"starts", backwards}, {"ends", List(axes.size(), -kEnd)}, {"axes", axes}, {"steps", backwards}}));
}

/// k quarter turns in the plane of two axes, from the first towards the second.
void import_quarter_turns(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  const List plane = node.has("dims") ? node.axes("dims", rank) : List{0, 1};
  if (plane.size() != 2 || rank < 2) return node.corrupt("turns in no plane");
  const int64_t turns = ((node.integer("k", 1) % 4) + 4) % 4;
  const auto backwards = [&](ValueId y, int64_t axis) { return sliced(node.b, y, axis, -1, -kEnd, -1); };
  List order = order_of(rank);
  if (turns % 2 == 1) std::swap(order[static_cast<size_t>(plane[0])], order[static_cast<size_t>(plane[1])]);
  ValueId y = x;
  if (turns == 1 || turns == 2) y = backwards(y, plane[1]);
  if (turns == 3 || turns == 2) y = backwards(y, plane[0]);
  node.give(turns % 2 == 1 ? node.b.transpose(y, order) : y);
}

/// fliplr, flipud: columns or rows backwards.
void import_flip_matrix(NodeImport& node, Op) {
  const int64_t axis = node.node().target.find("fliplr") != std::string::npos ? 1 : 0;
  node.give(sliced(node.b, node.tensor("self"), axis, -1, -kEnd, -1));
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

/// One tensor for each vector: its elements along one axis, repeated along the others.
void import_meshgrid(NodeImport& node, Op) {
  const std::vector<ValueId> vectors = node.tensors("tensors");
  const bool swapped = node.text("indexing", "ij") == "xy" && vectors.size() > 1;
  std::vector<Size> sizes;
  sizes.reserve(vectors.size());
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
    {"aten.cat", import_cat, Op::kConcat},
    {"aten.channel_shuffle", import_channel_shuffle},
    {"aten.chunk", import_split, Op::kSplit, Alias::kView},
    {"aten.column_stack", import_stack_along, Op::kConcat},
    {"aten.concat", import_cat, Op::kConcat},
    {"aten.constant_pad_nd", import_pad, Op::kPad},
    {"aten.dstack", import_stack_along, Op::kConcat},
    {"aten.flip", import_flip, Op::kSlice},
    {"aten.fliplr", import_flip_matrix, Op::kSlice},
    {"aten.flipud", import_flip_matrix, Op::kSlice},
    {"aten.hstack", import_stack_along, Op::kConcat},
    {"aten.hsplit", import_sections, Op::kSplit, Alias::kView},
    {"aten.meshgrid", import_meshgrid},
    {"aten.pad", import_pad, Op::kPad},
    {"aten.pixel_shuffle", import_pixel_shuffle, Op::kDepthToSpace},
    {"aten.pixel_unshuffle", import_pixel_unshuffle},
    {"aten.reflection_pad1d", import_pad, Op::kPad},
    {"aten.reflection_pad2d", import_pad, Op::kPad},
    {"aten.repeat", import_repeat, Op::kTile},
    {"aten.repeat_interleave", import_repeat_interleave},
    {"aten.replication_pad1d", import_pad, Op::kPad},
    {"aten.replication_pad2d", import_pad, Op::kPad},
    {"aten.roll", import_roll},
    {"aten.rot90", import_quarter_turns},
    {"aten.split", import_split, Op::kSplit, Alias::kView},
    {"aten.split_with_sizes", import_split, Op::kSplit, Alias::kView},
    {"aten.stack", import_stack, Op::kConcat},
    {"aten.tensor_split", import_sections, Op::kSplit, Alias::kView},
    {"aten.tile", import_repeat, Op::kTile},
    {"aten.unsafe_chunk", import_split, Op::kSplit},
    {"aten.unsafe_split", import_split, Op::kSplit},
    {"aten.unsafe_split_with_sizes", import_split, Op::kSplit},
    {"aten.unbind", import_unbind, Op::kSplit, Alias::kView},
    {"aten.unfold", import_unfold, Op::kGather, Alias::kView},
    {"aten.vsplit", import_sections, Op::kSplit, Alias::kView},
    {"aten.vstack", import_stack_along, Op::kConcat},
};

}  // namespace

std::span<const OperatorRow> movement_operators() { return kMovement; }

}  // namespace serin::formats::torch
