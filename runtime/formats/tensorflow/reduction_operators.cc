// reduction_operators.cc: reductions, softmax, sums along an axis.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/formats/tensorflow/operators.h"

namespace serin::formats::tf {

using graph::Op;

namespace {

using List = std::vector<int64_t>;

/// Whether these are all axes between the first and the last.
bool are_spatial(List axes, size_t rank) {
  std::ranges::sort(axes);
  List spatial(rank - 2);
  std::iota(spatial.begin(), spatial.end(), 1);
  return axes == spatial;
}

/// An image stays one if its sizes are kept, and pixels may be summed away.
bool reduce_image(NodeImport& n, Op op, const List& axes, size_t rank, bool keep) {
  graph::Builder& b = n.builder();
  const bool pixels = are_spatial(axes, rank);
  const bool channels = axes == List{static_cast<int64_t>(rank) - 1};  // of a LayerNormalization, which is over the last axis
  if (!n.prefers_first(0) || channels || (!keep && !pixels)) return false;
  const ValueId x = n.first(0);
  ValueId result = kNone;
  if (pixels && op == Op::kReduceMean) {
    result = b.add(Op::kGlobalAveragePool, {x});
  } else if (pixels && op == Op::kReduceMax) {
    result = b.add(Op::kGlobalMaxPool, {x});
  } else {
    List places;
    for (const int64_t axis : axes) places.push_back(place_in_first(axis, rank));
    std::ranges::sort(places);
    result = b.add(op, {x}, {{"axes", places}, {"keepdims", int64_t{1}}});
  }
  if (keep)
    n.out_first(result);
  else
    n.out(b.add(Op::kFlatten, {result}, {{"axis", int64_t{1}}}));
  return true;
}

void import_reduce(NodeImport& n, Op op) {
  const bool keep = n.flag("keep_dims");
  const auto rank = n.rank(0);
  if (!rank) return n.unsupported("a tensor of unknown rank");
  const List axes = n.axes(1, *rank);
  const bool may_be_image = *rank >= 3 && !axes.empty() && is_float(n.dtype(0));
  if (may_be_image && reduce_image(n, op, axes, *rank, keep)) return;
  if (axes.empty()) return n.out(n.in(0));
  n.out(n.builder().add(op, {n.in(0)}, {{"axes", axes}, {"keepdims", int64_t{keep}}}));
}

/// Of bool: as integers.
void import_reduce_bool(NodeImport& n, Op op) {
  graph::Builder& b = n.builder();
  const auto rank = n.rank(0);
  if (!rank) return n.unsupported("a tensor of unknown rank");
  const List axes = n.axes(1, *rank);
  const ValueId numbers = b.cast(n.in(0), DType::kInt32);
  const ValueId reduced = axes.empty() ? numbers : b.add(op, {numbers}, {{"axes", axes}, {"keepdims", int64_t{n.flag("keep_dims")}}});
  n.out(b.cast(reduced, DType::kBool));
}

void import_arg(NodeImport& n, Op op) {
  const auto rank = n.rank(0);
  const List axis = n.inputs() > 1 ? n.needed(1, "axes") : List{0};
  if (!rank || axis.size() != 1) return n.unsupported("an unknown axis");
  const ValueId place = n.builder().add(op, {n.in(0)}, {{"axis", n.axis(axis[0], *rank)}, {"keepdims", int64_t{0}}});
  n.out(n.builder().cast(place, n.dtype_attr("output_type", DType::kInt64)));
}

void import_softmax(NodeImport& n, Op op) { n.out(n.builder().add(op, {n.in(0)}, {{"axis", int64_t{-1}}})); }

void import_cumulative(NodeImport& n, Op op) {
  const auto rank = n.rank(0);
  const List axis = n.needed(1, "axes");
  if (!rank || axis.size() != 1) return n.unsupported("an unknown axis");
  const int64_t at = n.axis(axis[0], *rank);
  n.out(n.builder().add(op, {n.in(0), n.builder().constant(graph::make_scalar(DType::kInt64, static_cast<double>(at)))},
                        {{"exclusive", int64_t{n.flag("exclusive")}}, {"reverse", int64_t{n.flag("reverse")}}}));
}

constexpr OperatorRow kReductions[] = {
    {"All", 2, 2, import_reduce_bool, Op::kReduceMin},
    {"Any", 2, 2, import_reduce_bool, Op::kReduceMax},
    {"ArgMax", 1, 2, import_arg, Op::kArgMax},
    {"ArgMin", 1, 2, import_arg, Op::kArgMin},
    {"Cumprod", 2, 2, import_cumulative, Op::kCumProd},
    {"Cumsum", 2, 2, import_cumulative, Op::kCumSum},
    {"EuclideanNorm", 2, 2, import_reduce, Op::kReduceL2},
    {"LogSoftmax", 1, 1, import_softmax, Op::kLogSoftmax},
    {"Max", 2, 2, import_reduce, Op::kReduceMax},
    {"Mean", 2, 2, import_reduce, Op::kReduceMean},
    {"Min", 2, 2, import_reduce, Op::kReduceMin},
    {"Prod", 2, 2, import_reduce, Op::kReduceProd},
    {"Softmax", 1, 1, import_softmax, Op::kSoftmax},
    {"Sum", 2, 2, import_reduce, Op::kReduceSum},
};

}  // namespace

std::span<const OperatorRow> reduction_operators() { return kReductions; }

}  // namespace serin::formats::tf
