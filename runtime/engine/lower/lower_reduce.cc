// lower_reduce.cc: operators that run along axes: Reduce*, ArgMax, ArgMin, CumSum.

#include <algorithm>
#include <numeric>

#include "runtime/engine/lower/lowering.h"

namespace serin::engine {

namespace {

using graph::Op;
using kernels::ReduceFn;

ReduceFn reduce_fn(Op op) {
  switch (op) {
    case Op::kReduceL1: return ReduceFn::kL1;
    case Op::kReduceL2: return ReduceFn::kL2;
    case Op::kReduceMax: return ReduceFn::kMax;
    case Op::kReduceMin: return ReduceFn::kMin;
    case Op::kReduceMean: return ReduceFn::kMean;
    case Op::kReduceProd: return ReduceFn::kProd;
    case Op::kReduceSumSquare: return ReduceFn::kSumSquare;
    default: return ReduceFn::kSum;
  }
}

}  // namespace

Status lower_reduce(Lowering& at) {
  const size_t rank = at.shape(at.input(0)).rank();
  std::vector<int64_t> axes;
  if (const auto given = at.integers("axes", 1)) {
    axes = *given;
  } else if (at.has(1)) {
    return Lowering::refuse("its axes are computed during the run");
  }
  if (axes.empty()) {
    const bool none = at.node().integer("noop_with_empty_axes", 0) != 0;
    const bool changes_elements = at.op() == Op::kReduceL1 || at.op() == Op::kReduceL2 || at.op() == Op::kReduceSumSquare;
    if (none && !changes_elements) return at.alias(at.output(), at.input(0));
    if (!none) axes.resize(rank);
    std::iota(axes.begin(), axes.end(), int64_t{0});
  }
  for (int64_t& axis : axes) axis += axis < 0 ? static_cast<int64_t>(rank) : 0;
  std::sort(axes.begin(), axes.end());
  return at.emit(kernels::Reduce{reduce_fn(at.op()), std::move(axes)}, {at.input(0)}, {at.output()});
}

Status lower_arg_max(Lowering& at) {
  kernels::ArgMax op;
  op.axis = at.axis("axis", 0, at.shape(at.input(0)).rank());
  op.min = at.op() == Op::kArgMin;
  op.last = at.node().integer("select_last_index", 0) != 0;
  return at.emit(op, {at.input(0)}, {at.output()});
}

Status lower_cum_sum(Lowering& at) {
  const auto axis = at.integers("axis", 1);
  if (!axis || axis->size() != 1) return Lowering::refuse("its axis is computed during the run");
  const auto rank = static_cast<int64_t>(at.shape(at.input(0)).rank());
  kernels::CumSum op;
  op.axis = axis->front() < 0 ? axis->front() + rank : axis->front();
  op.exclusive = at.node().integer("exclusive", 0) != 0;
  op.reverse = at.node().integer("reverse", 0) != 0;
  return at.emit(op, {at.input(0)}, {at.output()});
}

}  // namespace serin::engine
