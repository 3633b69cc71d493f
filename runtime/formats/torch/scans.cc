// scans.cc: functions of an element and all before it along an axis, and integrals.
//
// A scan of n elements takes log2(n) steps: the step of distance d joins each element with the one d before it, which by then stands for the
// d elements up to it. So the length must be known.

#include <fmt/format.h>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::kNone;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

/// The axis and its length; an error, and 0, where that is open.
struct Line {
  int64_t axis = 0, length = 0;
};

Line line_of(NodeImport& node, ValueId x) {
  Line line;
  line.axis = node.axis(node.integer("dim", 0), node.rank(x));
  const auto length = node.b.size(x, static_cast<size_t>(line.axis));
  if (!length) node.unsupported("an axis of open length: its size must be known when the program is exported");
  line.length = length.value_or(0);
  return line;
}

ValueId elements_from(NodeImport& node, ValueId x, int64_t axis, int64_t begin) { return sliced(node.b, x, axis, begin, kEnd); }
ValueId elements_to(NodeImport& node, ValueId x, int64_t axis, int64_t end) { return sliced(node.b, x, axis, 0, end); }
ValueId side_by_side(NodeImport& node, ValueId first, ValueId rest, int64_t axis) {
  return node.b.add(Op::kConcat, {first, rest}, {{"axis", axis}});
}

/// 0, 1 ... along the axis, in the shape of x.
ValueId places_of(NodeImport& node, ValueId x, const Line& line) {
  List places = order_of(static_cast<size_t>(line.length)), shape(node.rank(x), 1);
  shape[static_cast<size_t>(line.axis)] = line.length;
  const ValueId range = node.b.constant(graph::make_constant(DType::kInt64, Shape{line.length}, places.data()));
  return expanded(node, node.b.reshape(range, shape), node.b.add(Op::kShape, {x}));
}

/// cummax, cummin: values and places. Of equal ones the last counts, and after a NaN all are NaN.
void import_extreme(NodeImport& node, Op op) {
  ValueId values = node.tensor("self");
  if (node.rank(values) == 0) return node.give({values, node.scalar({0})});
  const Line line = line_of(node, values);
  if (node.b.error()) return;
  ValueId places = places_of(node, values, line);
  const bool floats = is_float(node.b.dtype(values));
  for (int64_t distance = 1; distance < line.length; distance *= 2) {
    const ValueId old = elements_to(node, values, line.axis, -distance), own = elements_from(node, values, line.axis, distance);
    ValueId keeps = node.b.add(op, {own, old});
    if (floats) keeps = node.b.add(Op::kOr, {keeps, node.b.add(Op::kIsNaN, {own})});
    const auto joined = [&](ValueId x) {
      const ValueId chosen =
          node.b.add(Op::kWhere, {keeps, elements_from(node, x, line.axis, distance), elements_to(node, x, line.axis, -distance)});
      return side_by_side(node, elements_to(node, x, line.axis, distance), chosen, line.axis);
    };
    values = joined(values);
    places = joined(places);
  }
  node.give({values, places});
}

/// log(exp(a) + exp(b)) without overflow; the infinite larger one where it is infinite.
ValueId log_of_sum(NodeImport& node, ValueId a, ValueId b) {
  const ValueId most = node.b.add(Op::kMax, {a, b});
  const auto share = [&](ValueId x) { return node.b.add(Op::kExp, {node.b.add(Op::kSub, {x, most})}); };
  const ValueId sum = node.b.add(Op::kAdd, {most, node.b.add(Op::kLog, {node.b.add(Op::kAdd, {share(a), share(b)})})});
  return node.b.add(Op::kWhere, {node.b.add(Op::kIsInf, {most}), most, sum});
}

void import_log_of_sums(NodeImport& node, Op) {
  ValueId x = node.b.cast(node.tensor("self"), node.result_dtype());
  if (node.rank(x) == 0) return node.give(x);
  const Line line = line_of(node, x);
  if (node.b.error()) return;
  for (int64_t distance = 1; distance < line.length; distance *= 2) {
    const ValueId sums = log_of_sum(node, elements_from(node, x, line.axis, distance), elements_to(node, x, line.axis, -distance));
    x = side_by_side(node, elements_to(node, x, line.axis, distance), sums, line.axis);
  }
  node.give(x);
}

/// The widths between the samples, as a tensor that is broadcast to the areas; kNone for one width, which is `dx`.
ValueId widths_of(NodeImport& node, size_t rank, int64_t axis) {
  if (!node.has("x")) return kNone;
  ValueId x = node.b.cast(node.tensor("x"), node.result_dtype());
  if (node.rank(x) == 1) {
    List shape(rank, 1);
    shape[static_cast<size_t>(axis)] = -1;
    x = node.b.reshape(x, shape);
  } else if (node.rank(x) != rank) {
    node.unsupported("places of samples of another rank");
  }
  return node.b.add(Op::kSub, {elements_from(node, x, axis, 1), elements_to(node, x, axis, -1)});
}

/// trapezoid, cumulative_trapezoid: the sum of, or the sums of, the areas between neighbours.
void import_integral(NodeImport& node, Op) {
  const DType dtype = node.result_dtype();
  const ValueId y = node.b.cast(node.tensor("y"), dtype);
  const size_t rank = node.rank(y);
  if (rank == 0) return node.unsupported("a tensor of rank 0");
  const int64_t axis = node.axis(node.integer("dim", -1), rank);
  const ValueId widths = widths_of(node, rank, axis);
  if (node.b.error()) return;
  const ValueId both = node.b.add(Op::kAdd, {elements_from(node, y, axis, 1), elements_to(node, y, axis, -1)});
  const double dx = node.number("dx", 1);
  const ValueId areas = widths == kNone ? both : node.b.add(Op::kMul, {both, widths});
  const ValueId halves = node.b.add(Op::kMul, {areas, node.b.number(dtype, (widths == kNone ? dx : 1) / 2)});
  const bool all = node.node().target.find("cumulative") == std::string::npos;
  if (all) return node.give(node.b.add(Op::kReduceSum, {halves}, {{"axes", List{axis}}, {"keepdims", int64_t{0}}}));
  node.give(node.b.add(Op::kCumSum, {halves, node.b.constant(graph::make_constant(DType::kInt64, Shape{}, &axis))}));
}

constexpr OperatorRow kScans[] = {
    {"aten.cummax", import_extreme, Op::kGreaterOrEqual},
    {"aten.cummin", import_extreme, Op::kLessOrEqual},
    {"aten.cumulative_trapezoid", import_integral},
    {"aten.logcumsumexp", import_log_of_sums},
    {"aten.trapezoid", import_integral},
    {"aten.trapz", import_integral},
};

}  // namespace

std::span<const OperatorRow> scan_operators() { return kScans; }

}  // namespace serin::formats::torch
