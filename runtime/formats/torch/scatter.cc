// scatter.cc: writes to indices that the data gives, sums over them, and bags of embeddings.

#include <fmt/format.h>

#include <limits>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::Attributes;
using graph::kNone;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

ValueId shape(NodeImport& node, ValueId x) { return node.b.add(Op::kShape, {x}); }

/// x with the elements of `source` at the places `index` of an axis; reduction: "", "add", "mul", "max", "min".
ValueId scattered(NodeImport& node, ValueId x, ValueId index, ValueId source, int64_t axis, const std::string& reduction) {
  Attributes attributes = {{"axis", axis}};
  if (!reduction.empty()) attributes.insert_or_assign("reduction", reduction);
  return node.b.add(Op::kScatterElements, {x, index, source}, attributes);
}

/// A source may be larger than the indices: the elements at the beginning of each axis count.
ValueId as_large_as(NodeImport& node, ValueId source, ValueId index) {
  if (node.b.dims(source) == node.b.dims(index)) return source;
  const size_t rank = node.rank(source);
  return node.b.add(Op::kSlice, {source, node.b.integers(List(rank, 0)), shape(node, index), node.b.integers(order_of(rank))});
}

/// The least value of a type, or the largest one.
double extreme(DType dtype, bool largest) {
  if (is_float(dtype)) return largest ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  const auto limit = dtype == DType::kInt32 ? static_cast<double>(std::numeric_limits<int32_t>::max()) : 9.2e18;
  return largest ? limit : -limit;
}

/// scatter, scatter_add, scatter_reduce: elements of src, or a number. Without include_self what was at a place does not count.
void import_scatter(NodeImport& node, Op) {
  ValueId x = node.tensor("self");
  const ValueId index = node.tensor("index");
  const int64_t axis = node.axis(node.integer("dim", 0), node.rank(x));
  const DType dtype = node.b.dtype(x);
  const ValueId source = node.is_tensor("src") ? as_large_as(node, node.b.cast(node.tensor("src"), dtype), index)
                                               : expanded(node, node.operand("value", dtype), shape(node, index));
  const std::string how = node.node().target.find("scatter_add") != std::string::npos ? "sum" : node.text("reduce", "");
  const bool mean = how == "mean";
  const std::string reduction = how == "sum" || how == "add" || mean ? "add"
                                : how == "prod" || how == "multiply" ? "mul"
                                : how == "amax"                      ? "max"
                                : how == "amin"                      ? "min"
                                                                     : "";
  if (!how.empty() && reduction.empty()) return node.unsupported(fmt::format("reduces by '{}'", how));
  if (mean && !is_float(dtype)) return node.unsupported("means of integers");
  const auto everywhere = [&](double value) { return expanded(node, node.b.number(dtype, value), shape(node, index)); };
  const bool excludes = !how.empty() && !node.flag("include_self", true);
  if (excludes) {
    const double neutral = reduction == "add" ? 0 : reduction == "mul" ? 1 : extreme(dtype, reduction == "min");
    x = scattered(node, x, index, everywhere(neutral), axis, "");
  }
  const ValueId y = scattered(node, x, index, source, axis, reduction);
  if (!mean) return node.give(y);
  ValueId count = expanded(node, node.b.number(dtype, 1), shape(node, x));
  const ValueId once = count;
  if (excludes) count = scattered(node, count, index, everywhere(0), axis, "");
  count = scattered(node, count, index, everywhere(1), axis, "add");
  node.give(node.b.add(Op::kDiv, {y, node.b.add(Op::kMax, {count, once})}));
}

/// index_add, index_copy, index_fill: whole slices at the places of one axis.
void import_index_write(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  if (rank == 0) return node.unsupported("a tensor of rank 0");
  const int64_t axis = node.axis(node.integer("dim", 0), rank);
  const DType dtype = node.b.dtype(x);
  const std::string& target = node.node().target;
  const bool adds = target.find("index_add") != std::string::npos, fills = target.find("index_fill") != std::string::npos;
  const ValueId places = node.b.reshape(node.b.cast(node.tensor("index"), DType::kInt64), {-1});
  ValueId source = fills ? expanded(node, node.operand("value", dtype), shape(node, node.b.add(Op::kGather, {x, places}, {{"axis", axis}})))
                         : node.b.cast(node.tensor("source"), dtype);
  if (const double alpha = node.number("alpha", 1); adds && alpha != 1)
    source = node.b.add(Op::kMul, {source, node.b.number(dtype, alpha)});
  List column(rank, 1);
  column[static_cast<size_t>(axis)] = -1;
  const ValueId index = expanded(node, node.b.reshape(places, column), shape(node, source));
  node.give(scattered(node, x, index, source, axis, adds ? "add" : ""));
}

/// The elements of `source`, in order, where the mask is true.
void import_masked_scatter(NodeImport& node, Op) {
  const ValueId x = node.tensor("self"), sizes = shape(node, x);
  const ValueId mask = expanded(node, node.b.cast(node.tensor("mask"), DType::kBool), sizes);
  const ValueId flat = node.b.cast(node.b.reshape(mask, {-1}), DType::kInt64), one = node.b.number(DType::kInt64, 1);
  const ValueId before = node.b.add(Op::kSub, {node.b.add(Op::kCumSum, {flat, node.b.number(DType::kInt64, 0)}), one});
  const ValueId places = node.b.add(Op::kMax, {before, node.b.number(DType::kInt64, 0)});
  const ValueId source = node.b.reshape(node.b.cast(node.tensor("source"), node.b.dtype(x)), {-1});
  const ValueId found = node.b.add(Op::kReshape, {node.b.add(Op::kGather, {source, places}, {{"axis", int64_t{0}}}), sizes});
  node.give(node.b.add(Op::kWhere, {mask, found, x}));
}

/// Offsets 0, n, 2 n ... of bags that all have n elements: what a layer makes of indices [rows, n]. Nothing for others. If both sizes are open,
/// the offsets end with the indices, as the layer makes them.
std::optional<int64_t> bag_length(NodeImport& node, ValueId offsets, ValueId indices) {
  const graph::Graph& g = node.b.graph();
  graph::NodeId made = g.producer(offsets);
  while (g.is(made, Op::kCast)) made = g.producer(g.input(made, 0));
  if (!g.is(made, Op::kRange)) return std::nullopt;
  const auto begin = node.b.known_integers(g.input(made, 0)), step = node.b.known_integers(g.input(made, 2));
  if (!begin || !step || begin->at(0) != 0 || step->at(0) < 1) return std::nullopt;
  const auto end = node.b.known_integers(g.input(made, 1));
  const auto count = node.b.size(indices, 0);
  if (end.has_value() != count.has_value() || (end && (end->at(0) != *count || *count % step->at(0) != 0))) return std::nullopt;
  return step->at(0);
}

/// Sums, means or maxima of the rows of `weight` that the indices of a bag name.
void import_embedding_bag(NodeImport& node, Op) {
  const ValueId weight = node.tensor("weight"), indices = node.b.cast(node.tensor("indices"), DType::kInt64);
  const ValueId offsets = node.b.cast(node.tensor("offsets"), DType::kInt64);
  const int64_t mode = node.integer("mode", 0);  // sum, mean, max
  if (mode < 0 || mode > 2) return node.corrupt(fmt::format("mode is {}", mode));
  if (node.integer("padding_idx", -1) >= 0) return node.unsupported("a padding index");
  if (node.rank(indices) != 1) return node.unsupported("indices that are not a list");
  const DType dtype = node.b.dtype(weight);
  ValueId rows = node.b.add(Op::kGather, {weight, indices}, {{"axis", int64_t{0}}});
  if (const ValueId factors = node.optional_tensor("per_sample_weights"); factors != kNone)
    rows = node.b.add(Op::kMul, {rows, node.b.unsqueeze(node.b.cast(factors, dtype), {1})});
  const auto length = bag_length(node, offsets, indices);
  const auto width = node.b.size(weight, 1);
  if (length && width && !node.flag("include_last_offset", false)) {
    constexpr Op kOfBags[] = {Op::kReduceSum, Op::kReduceMean, Op::kReduceMax};
    const ValueId bags = node.b.reshape(rows, {-1, *length, *width});
    return node.give({node.b.add(kOfBags[mode], {bags}, {{"axes", List{1}}, {"keepdims", int64_t{0}}}), kNone, kNone, kNone});
  }
  // Each index has the number of the bags that began up to it, less one. An empty bag at the end begins behind the last index.
  const ValueId one = node.b.number(DType::kInt64, 1), none = node.b.number(DType::kInt64, 0);
  const ValueId behind = node.b.add(Op::kAdd, {shape(node, indices), node.b.integers({1})});
  const ValueId begun = scattered(node, expanded(node, none, behind), offsets, expanded(node, one, shape(node, offsets)), 0, "add");
  const ValueId numbers = node.b.add(Op::kSub, {sliced(node.b, node.b.add(Op::kCumSum, {begun, none}), 0, 0, -1), one});
  const ValueId bag = expanded(node, node.b.unsqueeze(numbers, {1}), shape(node, rows));
  const ValueId sizes =
      node.b.add(Op::kConcat, {shape(node, offsets), sliced(node.b, shape(node, weight), 0, 1, 2)}, {{"axis", int64_t{0}}});
  const auto filled = [&](double value) { return expanded(node, node.b.number(dtype, value), sizes); };
  const ValueId ones = expanded(node, node.b.number(dtype, 1), shape(node, rows));
  const ValueId counts = scattered(node, filled(0), bag, ones, 0, "add");
  ValueId y = scattered(node, filled(mode == 2 ? extreme(dtype, false) : 0), bag, rows, 0, mode == 2 ? "max" : "add");
  const ValueId empty = node.b.add(Op::kEqual, {counts, node.b.number(dtype, 0)});
  if (mode == 1) y = node.b.add(Op::kDiv, {y, node.b.add(Op::kMax, {counts, node.b.number(dtype, 1)})});
  if (mode == 2) y = node.b.add(Op::kWhere, {empty, node.b.number(dtype, 0), y});
  // An end of the last bag begins one more, of the indices behind it.
  node.give({node.flag("include_last_offset", false) ? sliced(node.b, y, 0, 0, -1) : y, kNone, kNone, kNone});
}

constexpr OperatorRow kScatter[] = {
    {"aten._embedding_bag", import_embedding_bag},  {"aten._embedding_bag_forward_only", import_embedding_bag},
    {"aten.embedding_bag", import_embedding_bag},   {"aten.index_add", import_index_write},
    {"aten.index_copy", import_index_write},        {"aten.index_fill", import_index_write},
    {"aten.masked_scatter", import_masked_scatter}, {"aten.scatter", import_scatter},
    {"aten.scatter_add", import_scatter},           {"aten.scatter_reduce", import_scatter},
};

}  // namespace

std::span<const OperatorRow> scatter_operators() { return kScatter; }

}  // namespace serin::formats::torch
