// selection.cc: elements at indices, writes to indices, sorting.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::kNone;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

void import_embedding(NodeImport& node, Op op) {
  node.give(node.b.add(op, {node.tensor("weight"), node.tensor("indices")}, {{"axis", int64_t{0}}}));
}

void import_index_select(NodeImport& node, Op op) {
  const ValueId x = node.tensor("self");
  node.give(node.b.add(op, {x, node.tensor("index")}, {{"axis", node.axis(node.integer("dim", 0), node.rank(x))}}));
}

void import_gather(NodeImport& node, Op op) {
  const ValueId x = node.tensor("self");
  node.give(node.b.add(op, {x, node.tensor("index")}, {{"axis", node.axis(node.integer("dim", 0), node.rank(x))}}));
}

void import_take_along(NodeImport& node, Op) {
  if (!node.has("dim")) return node.unsupported("takes from all elements");
  const ValueId x = node.tensor("self");
  node.give(node.b.add(Op::kGatherElements, {x, node.tensor("indices")}, {{"axis", node.axis(node.integer("dim", 0), node.rank(x))}}));
}

void import_take(NodeImport& node, Op op) {
  node.give(node.b.add(op, {node.b.reshape(node.tensor("self"), {-1}), node.tensor("index")}, {{"axis", int64_t{0}}}));
}

/// The tensors that select, and the axes that they select from.
struct Indices {
  std::vector<ValueId> tensors;
  List axes;
  bool mask = false;  ///< the only one is a mask of bools
};

Indices indices_of(NodeImport& node, size_t rank) {
  Indices found;
  const std::vector<ValueId> all = node.tensors("indices");
  if (all.size() > rank) node.corrupt(fmt::format("{} indices for rank {}", all.size(), rank));
  for (size_t i = 0; i < all.size() && i < rank; ++i) {
    if (all[i] == kNone) continue;
    const bool mask = node.b.dtype(all[i]) == DType::kBool;
    if (mask && !found.tensors.empty()) node.unsupported("selects by a mask and by indices");
    found.mask = found.mask || mask;
    found.tensors.push_back(all[i]);
    found.axes.push_back(static_cast<int64_t>(i));
  }
  if (found.tensors.empty()) node.corrupt("selects by nothing");
  if (found.mask && found.tensors.size() > 1) node.unsupported("selects by a mask and by indices");
  return found;
}

/// All indices, as large as they are together, side by side on a new last axis.
ValueId paired(NodeImport& node, const std::vector<ValueId>& tensors) {
  std::vector<ValueId> integers, parts;
  integers.reserve(tensors.size());
  parts.reserve(tensors.size());
  for (const ValueId tensor : tensors) integers.push_back(node.b.cast(tensor, DType::kInt64));
  const ValueId shape = node.b.add(Op::kShape, {node.b.add(Op::kMax, integers)});  // as large as all together
  for (const ValueId each : integers) parts.push_back(node.b.unsqueeze(expanded(node, each, shape), {-1}));
  return node.b.add(Op::kConcat, parts, {{"axis", int64_t{-1}}});
}

/// The selected axes first, then the others.
List order_with_first(const List& axes, size_t rank) {
  List order = axes;
  for (int64_t axis = 0; axis < static_cast<int64_t>(rank); ++axis)
    if (std::ranges::find(axes, axis) == axes.end()) order.push_back(axis);
  return order;
}

bool is_identity(const List& order) { return std::ranges::is_sorted(order); }

/// The order in which axes of a selection come out. GatherND and ScatterND have the selected places first; torch puts them in place of the
/// selected axes where these are side by side: x[:, i]. Empty: in front for both.
List order_of_selection(const List& axes, size_t selected, size_t whole) {
  const auto count = static_cast<int64_t>(axes.size()), first = axes[0];
  if (first == 0 || axes.back() - first + 1 != count) return {};
  List order;
  for (int64_t i = 0; i < first; ++i) order.push_back(static_cast<int64_t>(selected) + i);
  for (size_t i = 0; i < selected; ++i) order.push_back(static_cast<int64_t>(i));
  for (size_t i = selected + static_cast<size_t>(first); i < whole; ++i) order.push_back(static_cast<int64_t>(i));
  return order;
}

void import_index(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  const Indices indices = indices_of(node, rank);
  if (node.b.error()) return;
  if (indices.mask) return node.unsupported("selects by a mask, so that the size of the result depends on the data");
  if (indices.tensors.size() == 1) return node.give(node.b.add(Op::kGather, {x, indices.tensors[0]}, {{"axis", indices.axes[0]}}));
  const List order = order_with_first(indices.axes, rank);
  const ValueId moved = is_identity(order) ? x : node.b.transpose(x, order);
  const ValueId places = paired(node, indices.tensors);
  const ValueId found = node.b.add(Op::kGatherND, {moved, places});
  const List out = order_of_selection(indices.axes, node.rank(places) - 1, node.rank(found));
  node.give(out.empty() ? found : node.b.transpose(found, out));
}

/// self with `values` at the indices.
void import_index_put(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  const Indices indices = indices_of(node, rank);
  const ValueId values = node.b.cast(node.tensor("values"), node.b.dtype(x));
  if (node.b.error()) return;
  const bool adds = node.flag("accumulate", false);
  if (indices.mask) {
    const auto count = node.b.rank(values) == 0 || (node.b.rank(values) == 1 && node.b.size(values, 0) == 1);
    if (!count || adds || indices.axes[0] != 0) return node.unsupported("writes by a mask");
    ValueId mask = indices.tensors[0];
    List behind;
    for (size_t i = node.rank(mask); i < rank; ++i) behind.push_back(static_cast<int64_t>(i));
    if (!behind.empty()) mask = node.b.unsqueeze(mask, behind);
    return node.give(node.b.add(Op::kWhere, {mask, values, x}));
  }
  const List order = order_with_first(indices.axes, rank);
  const ValueId moved = is_identity(order) ? x : node.b.transpose(x, order), places = paired(node, indices.tensors);
  const ValueId found = node.b.add(Op::kGatherND, {moved, places});
  const List out = order_of_selection(indices.axes, node.rank(places) - 1, node.rank(found));
  const ValueId selection = out.empty() ? found : node.b.transpose(found, out);  // the values are broadcast to its shape
  ValueId written = expanded(node, values, node.b.add(Op::kShape, {selection}));
  if (!out.empty()) written = node.b.transpose(written, inverse_order(out));
  graph::Attributes attributes;
  if (adds) attributes.insert_or_assign("reduction", std::string("add"));
  const ValueId y = node.b.add(Op::kScatterND, {moved, places, written}, attributes);
  node.give(is_identity(order) ? y : node.b.transpose(y, inverse_order(order)));
}

void import_slice_scatter(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const auto axis = static_cast<size_t>(node.axis(node.integer("dim", 0), node.rank(x)));
  node.give(replaced(node, x, node.b.cast(node.tensor("src"), node.b.dtype(x)), axis, node.size("start", 0), node.size("end", kEnd),
                     node.integer("step", 1)));
}

void import_select_scatter(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const int64_t axis = node.axis(node.integer("dim", 0), node.rank(x)), index = node.integer("index", 0);
  if (index == -1 && !node.b.size(x, static_cast<size_t>(axis))) return node.unsupported("writes to the last place of an unknown length");
  const int64_t end = index == -1 ? kEnd : index + 1;
  node.give(replaced(node, x, node.b.unsqueeze(node.b.cast(node.tensor("src"), node.b.dtype(x)), {axis}), static_cast<size_t>(axis),
                     {index, kNone}, {end, kNone}, 1));
}

void import_top_k(NodeImport& node, Op op) {
  const ValueId x = node.tensor("self");
  const int64_t axis = node.axis(node.integer("dim", -1), node.rank(x));
  node.give(node.b.add_with_results(op, 2, {x, node.shape_of({node.size("k", 1)})},
                                    {{"axis", axis}, {"largest", int64_t{node.flag("largest", true)}}, {"sorted", int64_t{1}}}));
}

/// All elements in order, and their places.
void import_sort(NodeImport& node, Op op) {
  const ValueId x = node.tensor("self");
  const int64_t axis = node.axis(node.integer("dim", -1), node.rank(x));
  const ValueId length = node.b.reshape(node.sized(x, static_cast<size_t>(axis)), {1});
  const auto sorted = node.b.add_with_results(
      op, 2, {x, length}, {{"axis", axis}, {"largest", int64_t{node.flag("descending", false)}}, {"sorted", int64_t{1}}});
  if (node.node().target.find("argsort") != std::string::npos) return node.give(sorted[1]);
  node.give(sorted);
}

void import_triangle(NodeImport& node, Op op) {
  const bool upper = node.node().target.find("triu") != std::string::npos;
  const int64_t diagonal = node.integer("diagonal", 0);
  std::vector<ValueId> operands = {node.tensor("self")};
  if (diagonal != 0) operands.push_back(node.b.constant(graph::make_constant(DType::kInt64, Shape{}, &diagonal)));
  node.give(node.b.add(op, operands, {{"upper", int64_t{upper}}}));
}

void import_one_hot(NodeImport& node, Op op) {
  const int64_t classes = node.integer("num_classes", -1);
  if (classes < 1) return node.unsupported("a number of classes that depends on the data");
  node.give(node.b.add(
      op, {node.tensor("self"), node.b.constant(graph::make_constant(DType::kInt64, Shape{}, &classes)), node.b.integers({0, 1})},
      {{"axis", int64_t{-1}}}));
}

void import_nonzero(NodeImport& node, Op op) {
  ValueId x = node.tensor("self");
  node.give(node.b.transpose(node.b.add(op, {x}), {1, 0}));
}

constexpr OperatorRow kSelection[] = {
    {"aten.argsort", import_sort, Op::kTopK},
    {"aten.embedding", import_embedding, Op::kGather},
    {"aten.take_along_dim", import_take_along},
    {"aten.gather", import_gather, Op::kGatherElements},
    {"aten.index", import_index},
    {"aten.index_put", import_index_put},
    {"aten.index_select", import_index_select, Op::kGather},
    {"aten.nonzero", import_nonzero, Op::kNonZero},
    {"aten.one_hot", import_one_hot, Op::kOneHot},
    {"aten.select_scatter", import_select_scatter},
    {"aten.slice_scatter", import_slice_scatter},
    {"aten.sort", import_sort, Op::kTopK},
    {"aten.take", import_take, Op::kGather},
    {"aten.topk", import_top_k, Op::kTopK},
    {"aten.tril", import_triangle, Op::kTrilu},
    {"aten.triu", import_triangle, Op::kTrilu},
};

}  // namespace

std::span<const OperatorRow> selection_operators() { return kSelection; }

}  // namespace serin::formats::torch
