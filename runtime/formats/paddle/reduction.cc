// reduction.cc: sums, means, extremes, norms and running sums along axes, and softmax.

#include <cmath>

#include "runtime/formats/paddle/operators.h"

namespace serin::formats::paddle {
namespace {

/// axes and keepdims; no axes: all of them.
Attributes reduced_axes(Node& node) {
  const List axes = node.known_list("dim|axis", "Axis AxisTensor").value_or(List{});
  Attributes attributes{{"keepdims", int64_t{node.flag("keep_dim|keepdim|keepdims")}}};
  if (!axes.empty() && !node.flag("reduce_all")) attributes.emplace("axes", axes);
  return attributes;
}

ValueId reduced(Node& node, Op op, ValueId x) { return node.unary(op, x, reduced_axes(node)); }

/// Sums of booleans and small integers have a wider type, which the program declares.
ValueId widened(Node& node, ValueId x) {
  const DType from = node.b.dtype(x), to = node.dtype("out_dtype|dtype", node.out_dtype("Out"));
  return to == DType::kUndefined || from == to ? x : node.b.cast(x, to);
}

void import_reduce(Node& node, Op op) {
  const ValueId x = op == Op::kReduceSum || op == Op::kReduceProd ? widened(node, node.in("X")) : node.in("X");
  node.out("Out", reduced(node, op, x));
}

void import_mean_all(Node& node, Op op) { node.out("Out", node.unary(op, node.in("X"), {{"keepdims", int64_t{0}}})); }

void import_all_any(Node& node, Op op) {
  node.out("Out", node.b.cast(reduced(node, op, node.b.cast(node.in("X"), DType::kInt32)), DType::kBool));
}

void import_p_norm(Node& node, Op /*op*/) {
  const ValueId x = node.in("X");
  const double order = node.number("porder", 2);
  Attributes attributes{{"keepdims", int64_t{node.flag("keepdim")}}};
  if (!node.flag("asvector")) attributes.emplace("axes", List{node.integer("axis", -1)});
  if (order == 1 || order == 2) return node.out("Out", node.unary(order == 1 ? Op::kReduceL1 : Op::kReduceL2, x, attributes));
  const ValueId size = node.unary(Op::kAbs, x);
  if (std::isinf(order)) return node.out("Out", node.unary(order > 0 ? Op::kReduceMax : Op::kReduceMin, size, attributes));
  const ValueId sum = node.unary(Op::kReduceSum, node.with_number(Op::kPow, size, order), attributes);
  node.out("Out", node.with_number(Op::kPow, sum, 1 / order));
}

/// x / sqrt(sum of squares + epsilon)
void import_norm(Node& node, Op /*op*/) {
  const ValueId x = node.in("X");
  const ValueId squares = node.unary(Op::kReduceSumSquare, x, {{"axes", List{node.integer("axis", -1)}}, {"keepdims", int64_t{1}}});
  const ValueId length = node.unary(Op::kSqrt, node.with_number(Op::kAdd, squares, node.number("epsilon", 1e-10)));
  node.out("Out", node.binary(Op::kDiv, x, length));
  node.out("Norm", length);
}

void import_arg(Node& node, Op op) {
  ValueId x = node.in("X");
  const bool flat = node.flag("flatten");
  if (flat) x = node.b.reshape(x, {-1});
  const int64_t axis = flat ? 0 : node.known_integer("axis", "Axis", -1);
  const ValueId place = node.unary(op, x, {{"axis", axis}, {"keepdims", int64_t{node.flag("keepdims")}}});
  node.out("Out", node.b.cast(place, node.dtype("dtype", DType::kInt64)));
}

void import_cumulative(Node& node, Op op) {
  ValueId x = op == Op::kCumSum ? widened(node, node.in("X")) : node.in("X");
  const bool flat = node.flag("flatten");
  if (flat) x = node.b.reshape(x, {-1});
  const int64_t axis = flat ? 0 : node.known_integer("axis|dim", "AxisTensor", -1);
  node.out("Out", node.binary(op, x, node.b.number(DType::kInt64, static_cast<double>(node.axis(axis, node.rank(x)))),
                              {{"exclusive", int64_t{node.flag("exclusive")}}, {"reverse", int64_t{node.flag("reverse")}}}));
}

void import_softmax(Node& node, Op op) { node.out("Out", node.unary(op, node.in("X"), {{"axis", node.integer("axis", -1)}})); }

constexpr OperatorRow kReductionRows[] = {
    {"arg_max", "argmax", "X Axis", "Out", import_arg, Op::kArgMax},
    {"arg_min", "argmin", "X Axis", "Out", import_arg, Op::kArgMin},
    {"cumprod", "cumprod", "X", "Out", import_cumulative, Op::kCumProd},
    {"cumsum", "cumsum", "X AxisTensor", "Out", import_cumulative, Op::kCumSum},
    {"frobenius_norm", "frobenius_norm", "X Axis", "Out", import_reduce, Op::kReduceL2},
    {"log_softmax", "log_softmax", "X", "Out", import_softmax, Op::kLogSoftmax},
    {"logsumexp", "logsumexp", "X", "Out", import_reduce, Op::kReduceLogSumExp},
    {"mean", "mean_all", "X", "Out", import_mean_all, Op::kReduceMean},
    {"norm", "norm", "X", "Out Norm", import_norm},
    {"p_norm", "p_norm", "X", "Out", import_p_norm},
    {"reduce_all", "all", "X", "Out", import_all_any, Op::kReduceMin},
    {"reduce_any", "any", "X", "Out", import_all_any, Op::kReduceMax},
    {"reduce_max reduce_amax", "max amax", "X Axis", "Out", import_reduce, Op::kReduceMax},
    {"reduce_mean", "mean", "X Axis", "Out", import_reduce, Op::kReduceMean},
    {"reduce_min reduce_amin", "min amin", "X Axis", "Out", import_reduce, Op::kReduceMin},
    {"reduce_prod", "prod", "X Axis", "Out", import_reduce, Op::kReduceProd},
    {"reduce_sum", "sum", "X Axis", "Out", import_reduce, Op::kReduceSum},
    {"softmax", "softmax", "X", "Out", import_softmax, Op::kSoftmax},
};

}  // namespace

std::span<const OperatorRow> reduction_operators() { return kReductionRows; }

}  // namespace serin::formats::paddle
