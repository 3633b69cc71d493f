// epilogue.h: The operations after a sum in our own Conv and MatMul: y = act(sum + bias + residual), in the type of the sum.
#pragma once

#include "kernels/cuda/space.h"
#include "kernels/functors.h"
#include "kernels/op.h"

namespace serin::kernels::cuda {

/// Floats are summed in float (double in double), integers in 64 bits, where they wrap.
template <class T>
using sum_t = std::conditional_t<kIsFloatKind<T>, compute_t<T>, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <class S>
SERIN_HD S multiply_add(S a, S b, S sum) {
  if constexpr (std::is_floating_point_v<S>)
    return a * b + sum;
  else
    return binary(BinaryFn::kAdd, binary(BinaryFn::kMul, a, b), sum);
}

/// `operands` locates bias and residual for each element of y; a null pointer: absent.
template <class T>
struct Finish {
  UnaryFn activation = UnaryFn::kIdentity;
  float alpha = 0.f, beta = 0.f;
  const T *bias = nullptr, *residual = nullptr;
  Space<2> operands;

  SERIN_HD T operator()(sum_t<T> sum, int64_t i) const {
    if (bias || residual) {
      int64_t at[2];
      operands.locate(i, at);
      if (bias) sum = binary(BinaryFn::kAdd, sum, static_cast<sum_t<T>>(load(bias[at[0]])));
      if (residual) sum = binary(BinaryFn::kAdd, sum, static_cast<sum_t<T>>(load(residual[at[1]])));
    }
    return cast<T>(unary(activation, sum, alpha, beta));
  }
};

/// Input 2 is the bias if there is one, read with `bias_shape`; the residual is the last input.
struct FinishPlan {
  Epilogue epilogue;
  bool bias = false;
  Space<2> operands;

  FinishPlan(const Epilogue& the_epilogue, bool has_bias, const Shape& bias_shape, const Shape& residual_shape, const Shape& y)
      : epilogue(the_epilogue), bias(has_bias), operands(y, {broadcast_strides(bias_shape, y), broadcast_strides(residual_shape, y)}) {}

  template <class T>
  Finish<T> of(std::span<const TensorView> in) const {
    return {epilogue.activation,
            epilogue.alpha,
            epilogue.beta,
            bias ? in[2].as<const T>() : nullptr,
            epilogue.residual ? in.back().as<const T>() : nullptr,
            operands};
  }
};

}  // namespace serin::kernels::cuda
