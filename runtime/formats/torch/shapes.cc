// shapes.cc: the same elements in other shapes and orders. Axes count from the end if they are negative.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::Attributes;
using graph::kNone;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

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

/// mT, adjoint: the last two axes, swapped.
void import_last_transpose(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  if (rank < 2) return node.corrupt(fmt::format("a matrix of rank {}", rank));
  List order = order_of(rank);
  std::swap(order[rank - 2], order[rank - 1]);
  node.give(node.b.transpose(x, order));
}

void import_ravel(NodeImport& node, Op) { node.give(node.b.reshape(node.tensor("self"), {-1})); }

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

constexpr OperatorRow kShapes[] = {
    {"aten._unsafe_view", import_view, Op::kReshape, Alias::kMaybe},
    {"aten.adjoint", import_last_transpose, Op::kTranspose, Alias::kView},
    {"aten.alias", import_identity, Op::kIdentity, Alias::kView},
    {"aten.as_strided", import_strided},
    {"aten.clone", import_identity, Op::kIdentity},
    {"aten.contiguous", import_identity, Op::kIdentity, Alias::kMaybe},
    {"aten.detach", import_identity, Op::kIdentity, Alias::kView},
    {"aten.broadcast_to", import_expand, Op::kExpand, Alias::kView},
    {"aten.expand", import_expand, Op::kExpand, Alias::kView},
    {"aten.expand_as", import_expand, Op::kExpand, Alias::kView},
    {"aten.flatten", import_flatten, Op::kReshape, Alias::kMaybe},
    {"aten.lift_fresh_copy", import_identity, Op::kIdentity},
    {"aten.mT", import_last_transpose, Op::kTranspose, Alias::kView},
    {"aten.mH", import_last_transpose, Op::kTranspose, Alias::kView},
    {"aten.matrix_H", import_last_transpose, Op::kTranspose, Alias::kView},
    {"aten.moveaxis", import_movedim, Op::kTranspose, Alias::kView},
    {"aten.movedim", import_movedim, Op::kTranspose, Alias::kView},
    {"aten.numpy_T", import_transpose, Op::kTranspose, Alias::kView},
    {"aten.permute", import_permute, Op::kTranspose, Alias::kView},
    {"aten.ravel", import_ravel, Op::kReshape, Alias::kMaybe},
    {"aten.reshape", import_view, Op::kReshape, Alias::kMaybe},
    {"aten.reshape_as", import_view_as, Op::kReshape, Alias::kMaybe},
    {"aten.squeeze", import_squeeze, Op::kSqueeze, Alias::kView},
    {"aten.swapaxes", import_transpose, Op::kTranspose, Alias::kView},
    {"aten.swapdims", import_transpose, Op::kTranspose, Alias::kView},
    {"aten.t", import_transpose, Op::kTranspose, Alias::kView},
    {"aten.transpose", import_transpose, Op::kTranspose, Alias::kView},
    {"aten.unflatten", import_unflatten, Op::kReshape, Alias::kView},
    {"aten.unsqueeze", import_unsqueeze, Op::kUnsqueeze, Alias::kView},
    {"aten.view", import_view, Op::kReshape, Alias::kView},
    {"aten.view_as", import_view_as, Op::kReshape, Alias::kView},
};

}  // namespace

std::vector<Size> sizes_of(NodeImport& node, ValueId x, size_t begin, size_t end) {
  std::vector<Size> sizes;
  for (size_t i = begin; i < end; ++i) {
    const auto number = node.b.size(x, i);
    sizes.push_back(number ? Size{number, kNone} : Size{std::nullopt, node.sized(x, i)});
  }
  return sizes;
}

std::vector<int64_t> order_of(size_t rank) {
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<int64_t> inverse_order(const std::vector<int64_t>& order) {
  std::vector<int64_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return inverse;
}

ValueId expanded(NodeImport& node, ValueId x, ValueId shape) { return node.b.add(Op::kExpand, {x, shape}); }

std::span<const OperatorRow> shape_operators() { return kShapes; }

}  // namespace serin::formats::torch
