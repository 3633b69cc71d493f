// order.cc: places in the order of elements, how often each occurs, and norms that are bounded.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::kNone;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

/// The elements of an axis in rising order, and their places; NaN last.
std::vector<ValueId> sorted(NodeImport& node, ValueId x, int64_t axis) {
  const ValueId length = node.b.reshape(node.sized(x, static_cast<size_t>(axis)), {1});
  return node.b.add_with_results(Op::kTopK, 2, {x, length}, {{"axis", axis}, {"largest", int64_t{0}}, {"sorted", int64_t{1}}});
}

ValueId kept_reduction(NodeImport& node, Op op, ValueId x, int64_t axis) {
  return node.b.add(op, {x}, {{"axes", List{axis}}, {"keepdims", int64_t{1}}});
}

/// How many elements of an axis are numbers, with that axis kept.
ValueId numbers_along(NodeImport& node, ValueId x, int64_t axis) {
  const ValueId number = node.b.add(Op::kNot, {node.b.add(Op::kIsNaN, {x})});
  return kept_reduction(node, Op::kReduceSum, node.b.cast(number, DType::kInt64), axis);
}

ValueId picked(NodeImport& node, ValueId x, ValueId place, int64_t axis) {
  return node.b.add(Op::kGatherElements, {x, place}, {{"axis", axis}});
}

/// The lower one of the two in the middle of those that are numbers. With an axis, also the place.
void import_nan_median(NodeImport& node, Op) {
  ValueId x = node.tensor("self");
  const bool all = !node.has("dim");
  if (all) x = node.b.reshape(x, {-1});
  const size_t rank = node.rank(x);
  if (rank == 0 || !is_float(node.b.dtype(x))) return node.unsupported(rank == 0 ? "a tensor of rank 0" : "integers, which are no NaN");
  const int64_t axis = all ? 0 : node.axis(node.integer("dim", 0), rank);
  const ValueId last = node.b.add(Op::kMax, {node.b.add(Op::kSub, {numbers_along(node, x, axis), node.scalar({1})}), node.scalar({0})});
  const ValueId middle = node.b.add(Op::kDiv, {last, node.scalar({2})});
  std::vector<ValueId> results;
  for (const ValueId each : sorted(node, x, axis)) {
    const ValueId found = picked(node, each, middle, axis);
    results.push_back(node.flag("keepdim", false) ? found : node.b.squeeze(found, {axis}));
  }
  if (all) results.resize(1);
  node.give(results);
}

/// The most frequent element, the smallest of several such, and the last place that has it.
void import_mode(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  if (rank == 0) return node.unsupported("a tensor of rank 0");
  const int64_t axis = node.axis(node.integer("dim", -1), rank), last = static_cast<int64_t>(rank) - 1;
  const auto length = node.b.size(x, static_cast<size_t>(axis));
  constexpr int64_t kMost = 1024;  // each element is compared with each
  if (!length || *length > kMost || *length < 1) return node.unsupported(fmt::format("an axis of open length, or of more than {}", kMost));
  List order = order_of(rank);
  std::swap(order[static_cast<size_t>(axis)], order[static_cast<size_t>(last)]);
  const ValueId rows = axis == last ? x : node.b.transpose(x, order), rising = sorted(node, rows, last)[0];
  const ValueId equal =
      node.b.cast(node.b.add(Op::kEqual, {node.b.unsqueeze(rising, {-1}), node.b.unsqueeze(rising, {-2})}), DType::kInt64);
  const ValueId counts = node.b.add(Op::kReduceSum, {equal}, {{"axes", List{-1}}, {"keepdims", int64_t{0}}});
  const ValueId value = picked(node, rising, node.b.add(Op::kArgMax, {counts}, {{"axis", last}, {"keepdims", int64_t{1}}}), last);
  const ValueId range = node.b.add(Op::kRange, {node.scalar({0}), node.scalar({length}), node.scalar({1})});
  const ValueId here = node.b.add(Op::kWhere, {node.b.add(Op::kEqual, {rows, value}), range, node.scalar({-1})});
  std::vector<ValueId> results = {value, kept_reduction(node, Op::kReduceMax, here, last)};
  for (ValueId& each : results) {
    if (axis != last) each = node.b.transpose(each, order);
    if (!node.flag("keepdim", false)) each = node.b.squeeze(each, {axis});
  }
  node.give(results);
}

/// How many elements lie in each of `bins` parts between min and max, or between the least and the largest element.
void import_histogram(NodeImport& node, Op) {
  const DType dtype = node.result_dtype();
  const ValueId x = node.b.reshape(node.b.cast(node.tensor("self"), dtype), {-1, 1});
  const int64_t bins = node.integer("bins", 100);
  const double least = node.number("min", 0), most = node.number("max", 0);
  constexpr int64_t kMost = 1 << 16;
  if (bins < 1 || bins > kMost || least > most) return node.corrupt(fmt::format("{} parts between {} and {}", bins, least, most));
  const auto number = [&](double value) { return node.b.number(dtype, value); };
  ValueId low = number(least), high = number(most);
  if (least == most) {
    low = node.b.add(Op::kReduceMin, {x}, {{"keepdims", int64_t{0}}}), high = node.b.add(Op::kReduceMax, {x}, {{"keepdims", int64_t{0}}});
    const ValueId widens = node.b.cast(node.b.add(Op::kEqual, {low, high}), dtype);
    low = node.b.add(Op::kSub, {low, widens}), high = node.b.add(Op::kAdd, {high, widens});
  }
  const ValueId scaled = node.b.add(Op::kMul, {node.b.add(Op::kSub, {x, low}), number(static_cast<double>(bins))});
  const ValueId place = node.b.add(Op::kFloor, {node.b.add(Op::kDiv, {scaled, node.b.add(Op::kSub, {high, low})})});
  const ValueId inside = node.b.add(Op::kAnd, {node.b.add(Op::kGreaterOrEqual, {x, low}), node.b.add(Op::kLessOrEqual, {x, high})});
  const ValueId last = node.b.add(Op::kMin, {place, number(static_cast<double>(bins - 1))});  // max itself is in the last part
  const ValueId range = node.b.cast(node.b.add(Op::kRange, {node.scalar({0}), node.scalar({bins}), node.scalar({1})}), dtype);
  const ValueId hit = node.b.add(Op::kAnd, {inside, node.b.add(Op::kEqual, {last, range})});
  node.give(node.b.add(Op::kReduceSum, {node.b.cast(hit, dtype)}, {{"axes", List{0}}, {"keepdims", int64_t{0}}}));
}

/// Parts along an axis whose norm is above the bound are scaled to it.
void import_renorm(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  const int64_t axis = node.axis(node.integer("dim", 0), rank);
  const double p = node.number("p", 2), bound = node.number("maxnorm", 1);
  List others = order_of(rank);
  std::erase(others, axis);
  if (others.empty() || (p != 1 && p != 2))
    return node.unsupported(fmt::format("a norm of order {} of parts of rank {}", p, others.size()));
  const DType dtype = node.b.dtype(x);
  const ValueId norm = node.b.add(p == 2 ? Op::kReduceL2 : Op::kReduceL1, {x}, {{"axes", others}, {"keepdims", int64_t{1}}});
  const ValueId limit = node.b.number(dtype, bound);
  const ValueId factor = node.b.add(Op::kDiv, {limit, node.b.add(Op::kAdd, {norm, node.b.number(dtype, 1e-7)})});
  const ValueId above = node.b.add(Op::kGreater, {norm, limit});
  node.give(node.b.add(Op::kMul, {x, node.b.add(Op::kWhere, {above, factor, node.b.number(dtype, 1)})}));
}

/// The elements at `ranks` [q] of sorted rows, or [.., q] with other ranks for each row.
ValueId at_ranks(NodeImport& node, ValueId rows, ValueId ranks, bool for_each_row) {
  const ValueId places = node.b.cast(ranks, DType::kInt64);
  return for_each_row ? picked(node, rows, places, -1) : node.b.add(Op::kGather, {rows, places}, {{"axis", int64_t{-1}}});
}

/// Sorted rows, ranks between two elements -> the number between these.
ValueId interpolated(NodeImport& node, ValueId rows, ValueId ranks, bool for_each_row) {
  const std::string how = node.text("interpolation", "linear");
  const auto at = [&](ValueId rank) { return at_ranks(node, rows, rank, for_each_row); };
  const ValueId below = node.b.add(Op::kFloor, {ranks}), above = node.b.add(Op::kCeil, {ranks});
  if (how == "lower") return at(below);
  if (how == "higher") return at(above);
  if (how == "nearest") return at(node.b.add(Op::kRound, {ranks}));
  if (how != "linear" && how != "midpoint") return node.unsupported(fmt::format("interpolation is '{}'", how)), rows;
  const ValueId low = at(below), high = at(above);
  const ValueId share = how == "midpoint" ? node.b.number(node.b.dtype(rows), 0.5) : node.b.add(Op::kSub, {ranks, below});
  return node.b.add(Op::kAdd, {low, node.b.add(Op::kMul, {share, node.b.add(Op::kSub, {high, low})})});
}

/// Results [.., q] -> in the order of axes of the program: q first, and the axis, of one element, where it was or nowhere.
ValueId in_place(NodeImport& node, ValueId y, const List& order, bool many, bool keep) {
  const auto rank = static_cast<int64_t>(order.size());
  List inverse = inverse_order(order);
  if (!many) return keep ? node.b.transpose(y, inverse) : node.b.squeeze(y, {-1});
  if (keep) {
    y = node.b.unsqueeze(y, {-1});
    std::ranges::replace(inverse, rank - 1, rank);
  } else {
    std::erase(inverse, rank - 1);
  }
  inverse.insert(inverse.begin(), rank - 1);
  return node.b.transpose(y, inverse);
}

/// quantile; nanquantile counts only those that are numbers.
void import_quantile(NodeImport& node, Op) {
  const DType dtype = node.result_dtype();
  const bool skips = node.node().target.find("nanquantile") != std::string::npos, all = !node.has("dim"),
             keep = node.flag("keepdim", false);
  ValueId x = node.b.cast(node.tensor("self"), dtype);
  const size_t given_rank = node.rank(x);
  if (all) x = node.b.reshape(x, {-1});
  const size_t rank = node.rank(x);
  if (rank == 0) return node.unsupported("a tensor of rank 0");
  const int64_t axis = all ? 0 : node.axis(node.integer("dim", 0), rank);
  const bool many = node.is_tensor("q") && node.rank(node.tensor("q")) == 1;
  List order = order_of(rank);
  std::erase(order, axis);
  order.push_back(axis);
  const ValueId rows = sorted(node, node.b.transpose(x, order), static_cast<int64_t>(rank) - 1)[0];
  const ValueId count = skips ? numbers_along(node, rows, -1) : node.sized(rows, rank - 1);
  const ValueId last = node.b.cast(node.b.add(Op::kMax, {node.b.add(Op::kSub, {count, node.scalar({1})}), node.scalar({0})}), dtype);
  const ValueId ranks = node.b.add(Op::kMul, {node.b.reshape(node.operand("q", dtype), {-1}), last});
  ValueId y = interpolated(node, rows, ranks, skips);
  if (!skips) {
    const ValueId end = sliced(node.b, rows, static_cast<int64_t>(rank) - 1, -1, kEnd);
    y = node.b.add(Op::kWhere, {node.b.add(Op::kIsNaN, {end}), end, y});  // sorted last
  }
  if (!all || !keep) return node.give(in_place(node, y, order, many, keep));
  List shape(given_rank, 1);
  if (many) shape.insert(shape.begin(), -1);
  node.give(node.b.reshape(y, shape));
}

constexpr OperatorRow kOrders[] = {
    {"aten.histc", import_histogram},      {"aten.mode", import_mode},         {"aten.nanmedian", import_nan_median},
    {"aten.nanquantile", import_quantile}, {"aten.quantile", import_quantile}, {"aten.renorm", import_renorm},
};

}  // namespace

std::span<const OperatorRow> order_operators() { return kOrders; }

}  // namespace serin::formats::torch
