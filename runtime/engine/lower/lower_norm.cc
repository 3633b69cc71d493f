// lower_norm.cc: Softmax, LogSoftmax, LayerNormalization, BatchNormalization.

#include "runtime/engine/lower/lowering.h"

namespace serin::engine {

Status lower_softmax(Lowering& at) {
  kernels::Softmax op;
  op.axis = at.axis("axis", -1, at.shape(at.input(0)).rank());
  op.log = at.op() == graph::Op::kLogSoftmax;
  return at.emit(op, {at.input(0)}, {at.output()});
}

Status lower_layer_norm(Lowering& at) {
  kernels::LayerNorm op;
  const Shape& x = at.shape(at.input(0));
  op.axis = at.axis("axis", -1, x.rank());
  const Shape row(x.dims().subspan(static_cast<size_t>(op.axis)));
  for (size_t i = 1; i < at.node().inputs.size(); ++i) {
    if (at.has(i) && at.shape(at.input(i)).elements() != row.elements()) return lower_generic(at);  // parameters that broadcast
  }
  op.epsilon = static_cast<float>(at.node().number("epsilon", 1e-5));
  op.bias = at.has(2);
  std::vector<TensorId> inputs = {at.input(0), at.input(1)};
  if (op.bias) inputs.push_back(at.input(2));
  return at.emit(op, std::move(inputs), {at.output()});
}

Status lower_batch_norm(Lowering& at) {
  const kernels::BatchNorm op{static_cast<float>(at.node().number("epsilon", 1e-5))};
  return at.emit(op, {at.input(0), at.input(1), at.input(2), at.input(3), at.input(4)}, {at.output()});
}

}  // namespace serin::engine
