// lower_window.cc: lowers Conv, FusedConv and the pools. ONNX has several ways to give the place of a window (auto_pad, ceil_mode,
// defaults); graph::resolve_window resolves them into one explicit form. Where ceil_mode lets a window reach further than the pads, the
// shape of the result includes that window.

#include <numeric>

#include "runtime/engine/lower/lowering.h"
#include "runtime/graph/ops/window.h"

namespace serin::engine {

namespace {

/// The batch may be as large as the data says; what a window slides over may not.
Result<graph::Window> window_of(Lowering& at, std::vector<int64_t> kernel) {
  for (const BoundedDim& dim : at.tensor(at.input(0)).bounded) {
    if (dim.axis != 0) return Lowering::refuse("slides over a tensor whose size depends on the data");
  }
  const graph::Dims dims = graph::dims_of(at.shape(at.input(0)));
  return graph::resolve_window(at.node(), std::span(dims).subspan(2), std::move(kernel));
}

}  // namespace

Status lower_conv(Lowering& at) {
  const Shape& weight = at.shape(at.input(1));
  SERIN_TRY(graph::Window window, window_of(at, {weight.begin() + 2, weight.end()}));
  kernels::Conv op{
      std::move(window.strides), std::move(window.dilations), std::move(window.pads), at.node().integer("group", 1), at.has(2), {}};
  std::vector<TensorId> inputs = {at.input(0), at.input(1)};
  if (at.has(2)) inputs.push_back(at.input(2));
  if (at.op() == graph::Op::kFusedConv) {
    SERIN_TRY(op.epilogue, lower_epilogue(at));
    op.epilogue.residual = at.has(3);
    if (at.has(3)) inputs.push_back(at.input(3));
  }
  return at.emit(std::move(op), std::move(inputs), {at.output()});
}

Status lower_pool(Lowering& at) {
  SERIN_TRY(graph::Window window, window_of(at, {}));
  const bool average = at.op() == graph::Op::kAveragePool;
  kernels::Pool op{average,
                   at.node().integer("count_include_pad", 0) != 0,
                   std::move(window.kernel),
                   std::move(window.strides),
                   std::move(window.dilations),
                   std::move(window.pads)};
  return at.emit(std::move(op), {at.input(0)}, {at.output()});
}

/// A window as large as the image is a reduction.
Status lower_global_pool(Lowering& at) {
  std::vector<int64_t> axes(at.shape(at.input(0)).rank() - 2);
  std::iota(axes.begin(), axes.end(), int64_t{2});
  const auto fn = at.op() == graph::Op::kGlobalAveragePool ? kernels::ReduceFn::kMean : kernels::ReduceFn::kMax;
  return at.emit(kernels::Reduce{fn, std::move(axes)}, {at.input(0)}, {at.output()});
}

}  // namespace serin::engine
