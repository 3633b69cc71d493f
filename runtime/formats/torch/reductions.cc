// reductions.cc: sums and other reductions along axes. No axes means all of them.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::Attributes;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

Attributes along(NodeImport& node, ValueId x) {
  Attributes attributes = {{"keepdims", int64_t{node.flag("keepdim", false)}}};
  const List axes = node.axes("dim", node.rank(x));
  if (!axes.empty()) attributes.insert_or_assign("axes", axes);
  return attributes;
}

/// A number has no axes to reduce.
ValueId reduced(NodeImport& node, Op op, ValueId x, Attributes attributes) {
  return node.rank(x) == 0 ? x : node.b.add(op, {x}, std::move(attributes));
}

void import_reduce(NodeImport& node, Op op) {
  const ValueId x = node.b.cast(node.tensor("self"), node.result_dtype());
  List axes = node.axes("dim", node.rank(x));
  std::ranges::sort(axes);
  // adaptive_avg_pool2d(1), in the core spelling
  if (op == Op::kReduceMean && node.rank(x) == 4 && axes == List{2, 3} && node.flag("keepdim", false))
    return node.give(node.b.add(Op::kGlobalAveragePool, {x}));
  node.give(reduced(node, op, x, along(node, x)));
}

/// max.dim, min.dim: values and places.
void import_reduce_with_index(NodeImport& node, Op op) {
  const ValueId x = node.tensor("self");
  const int64_t keep = node.flag("keepdim", false);
  if (node.rank(x) == 0) return node.unsupported("a tensor of rank 0");
  const int64_t axis = node.axis(node.integer("dim", 0), node.rank(x));
  const ValueId values = node.b.add(op, {x}, {{"axes", List{axis}}, {"keepdims", keep}});
  node.give({values, node.b.add(op == Op::kReduceMax ? Op::kArgMax : Op::kArgMin, {x}, {{"axis", axis}, {"keepdims", keep}})});
}

void import_arg(NodeImport& node, Op op) {
  ValueId x = node.tensor("self");
  const bool all = !node.has("dim");
  if (all) x = node.b.reshape(x, {-1});
  const int64_t axis = all ? 0 : node.axis(node.integer("dim", 0), node.rank(x));
  const ValueId place = node.b.add(op, {x}, {{"axis", axis}, {"keepdims", int64_t{!all && node.flag("keepdim", false)}}});
  node.give(place);
}

/// any: a maximum of 0 and 1; all: a minimum.
void import_any(NodeImport& node, Op op) {
  const ValueId x = node.b.cast(node.b.cast(node.tensor("self"), DType::kBool), DType::kInt32);
  node.give(node.b.cast(reduced(node, op, x, along(node, x)), DType::kBool));
}

/// The number of elements that a mean is taken of, as a tensor of the type of x.
ValueId count_of(NodeImport& node, ValueId x, const List& axes) {
  ValueId shape = node.b.add(Op::kShape, {x});
  if (!axes.empty()) shape = node.b.add(Op::kGather, {shape, node.b.integers(axes)}, {{"axis", int64_t{0}}});
  return node.b.cast(node.b.add(Op::kReduceProd, {shape}, {{"keepdims", int64_t{0}}}), node.b.dtype(x));
}

struct Moments {
  ValueId mean, variance;
};

/// The sum of squared differences from the mean, divided by the number of elements less `correction`.
Moments moments(NodeImport& node) {
  const ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  const List axes = node.axes("dim", rank);
  const double correction = node.has("correction") ? node.number("correction", 1) : node.flag("unbiased", true) ? 1 : 0;
  const DType dtype = node.b.dtype(x);
  Attributes kept = {{"keepdims", int64_t{1}}}, wanted = along(node, x);
  if (!axes.empty()) kept.insert_or_assign("axes", axes);
  const ValueId mean = node.b.add(Op::kReduceMean, {x}, kept);
  const ValueId centred = node.b.add(Op::kSub, {x, mean});
  const ValueId squares = node.b.add(Op::kMul, {centred, centred});
  const ValueId mean_result = node.flag("keepdim", false) ? mean : node.b.add(Op::kReduceMean, {x}, wanted);
  if (correction == 0) return {mean_result, node.b.add(Op::kReduceMean, {squares}, wanted)};
  const ValueId count = node.b.add(Op::kSub, {count_of(node, x, axes), node.b.number(dtype, correction)});
  return {mean_result, node.b.add(Op::kDiv, {node.b.add(Op::kReduceSum, {squares}, wanted), count})};
}

void import_variance(NodeImport& node, Op) {
  const Moments of = moments(node);
  const std::string& target = node.node().target;
  const ValueId spread = target.find("std") != std::string::npos ? node.b.add(Op::kSqrt, {of.variance}) : of.variance;
  if (target.find("_mean") != std::string::npos) return node.give({spread, of.mean});
  node.give(spread);
}

void import_cumulative(NodeImport& node, Op op) {
  const ValueId x = node.b.cast(node.tensor("self"), node.result_dtype());
  if (node.rank(x) == 0) return node.give(x);
  const int64_t axis = node.axis(node.integer("dim", 0), node.rank(x));
  node.give(node.b.add(op, {x, node.b.constant(graph::make_constant(DType::kInt64, Shape{}, &axis))}));
}

/// How many elements are not zero.
void import_count(NodeImport& node, Op op) {
  const ValueId x = node.tensor("self");
  const ValueId counted = node.b.cast(node.b.cast(x, DType::kBool), DType::kInt64);
  node.give(reduced(node, op, counted, along(node, x)));
}

/// Without the elements that are not a number.
void import_nan_sum(NodeImport& node, Op op) {
  const ValueId x = node.b.cast(node.tensor("self"), node.result_dtype());
  const ValueId kept = node.b.add(Op::kWhere, {node.b.add(Op::kIsNaN, {x}), node.b.number(node.result_dtype(), 0), x});
  node.give(reduced(node, op, kept, along(node, x)));
}

/// The sum of those that are a number, divided by how many they are.
void import_nan_mean(NodeImport& node, Op) {
  const DType dtype = node.result_dtype();
  const ValueId x = node.b.cast(node.tensor("self"), dtype), nan = node.b.add(Op::kIsNaN, {x});
  const ValueId kept = node.b.add(Op::kWhere, {nan, node.b.number(dtype, 0), x});
  const ValueId counted = node.b.cast(node.b.add(Op::kNot, {nan}), dtype);
  node.give(
      node.b.add(Op::kDiv, {reduced(node, Op::kReduceSum, kept, along(node, x)), reduced(node, Op::kReduceSum, counted, along(node, x))}));
}

void import_extremes(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  node.give({reduced(node, Op::kReduceMin, x, along(node, x)), reduced(node, Op::kReduceMax, x, along(node, x))});
}

/// median: the lower one of the two in the middle; kthvalue: the k-th smallest. Both sort. With an axis, also the place.
void import_order(NodeImport& node, Op) {
  ValueId x = node.tensor("self");
  const bool all = !node.has("dim") && !node.has("k");
  if (all) x = node.b.reshape(x, {-1});
  const size_t rank = node.rank(x);
  if (rank == 0) return node.unsupported("a tensor of rank 0");
  const int64_t axis = all ? 0 : node.axis(node.integer("dim", -1), rank);
  const ValueId length = node.sized(x, static_cast<size_t>(axis)), one = node.b.number(DType::kInt64, 1);
  const ValueId middle = node.b.add(Op::kDiv, {node.b.add(Op::kAdd, {length, one}), node.b.number(DType::kInt64, 2)});
  const ValueId kth = node.has("k") ? node.scalar(node.size("k", 1)) : middle;  // counted from 1
  const auto sorted = node.b.add_with_results(Op::kTopK, 2, {x, node.b.reshape(kth, {1})},
                                              {{"axis", axis}, {"largest", int64_t{0}}, {"sorted", int64_t{1}}});
  std::vector<ValueId> results;
  for (const ValueId each : sorted) {
    const ValueId last = sliced(node.b, each, axis, -1, kEnd);
    results.push_back(node.flag("keepdim", false) ? last : node.b.squeeze(last, {axis}));
  }
  if (all) results.resize(1);
  node.give(results);
}

constexpr OperatorRow kReductions[] = {
    {"aten.all", import_any, Op::kReduceMin},
    {"aten.amax", import_reduce, Op::kReduceMax},
    {"aten.amin", import_reduce, Op::kReduceMin},
    {"aten.aminmax", import_extremes},
    {"aten.any", import_any, Op::kReduceMax},
    {"aten.argmax", import_arg, Op::kArgMax},
    {"aten.argmin", import_arg, Op::kArgMin},
    {"aten.count_nonzero", import_count, Op::kReduceSum},
    {"aten.cumprod", import_cumulative, Op::kCumProd},
    {"aten.cumsum", import_cumulative, Op::kCumSum},
    {"aten.kthvalue", import_order},
    {"aten.logsumexp", import_reduce, Op::kReduceLogSumExp},
    {"aten.max.default", import_reduce, Op::kReduceMax},
    {"aten.max.dim", import_reduce_with_index, Op::kReduceMax},
    {"aten.mean", import_reduce, Op::kReduceMean},
    {"aten.median", import_order},
    {"aten.min.default", import_reduce, Op::kReduceMin},
    {"aten.min.dim", import_reduce_with_index, Op::kReduceMin},
    {"aten.nanmean", import_nan_mean},
    {"aten.nansum", import_nan_sum, Op::kReduceSum},
    {"aten.prod", import_reduce, Op::kReduceProd},
    {"aten.std", import_variance},
    {"aten.std_mean", import_variance},
    {"aten.sum", import_reduce, Op::kReduceSum},
    {"aten.var", import_variance},
    {"aten.var_mean", import_variance},
};

}  // namespace

std::span<const OperatorRow> reduce_operators() { return kReductions; }

}  // namespace serin::formats::torch
