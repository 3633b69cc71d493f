// epilogue.h: The operations after a sum in Conv and MatMul: y = act(sum + bias + residual), in double for floats, rounded once at the end.
#pragma once

#include "kernels/indexing.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::ref {

/// Sums of integers wrap: signed overflow would be undefined.
template <class S>
S add(S a, S b) {
  return kernels::binary(BinaryFn::kAdd, a, b);
}
template <class S>
S multiply(S a, S b) {
  return kernels::binary(BinaryFn::kMul, a, b);
}

template <class T>
class Epilogued {
 public:
  /// `in[2]` is the bias if there is one; the residual is the last input. Both broadcast to `shape`.
  Epilogued(const Epilogue& epilogue, bool bias, Inputs in, const Shape& shape)
      : epilogue_(epilogue), bias_(bias ? &in[2] : nullptr), residual_(epilogue.residual ? &in.back() : nullptr), shape_(shape) {}

  T operator()(sum_t<T> sum, int64_t i) const {
    if (bias_) sum = add(sum, value(*bias_, i));
    if (residual_) sum = add(sum, value(*residual_, i));
    return narrow<T>(kernels::unary(epilogue_.activation, sum, epilogue_.alpha, epilogue_.beta));
  }

 private:
  /// The element of `operand` for element i of the output, after broadcasting.
  sum_t<T> value(const TensorView& operand, int64_t i) const {
    const Strides strides = broadcast_strides(operand.shape, shape_);
    int64_t offset = 0;
    for (size_t axis = shape_.rank(); axis-- > 0; i /= shape_[axis]) offset += i % shape_[axis] * strides[axis];
    return widen(operand.as<const T>()[offset]);
  }

  const Epilogue& epilogue_;
  const TensorView* bias_;
  const TensorView* residual_;
  const Shape& shape_;
};

}  // namespace serin::kernels::ref
