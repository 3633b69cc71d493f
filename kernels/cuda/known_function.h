// known_function.h: Functions of one element as types, so that a kernel is compiled for each. Where the function is a parameter, every element of a pack has
// the code of all functions, several hundred kilobytes of it. Then no two elements are computed side by side.
//
//   return with_function<UnaryFn::kRelu, UnaryFn::kGelu>(AnyFunction{fn, alpha, beta}, [&](auto f) { return launch(stream, grid, kernel<decltype(f)>, f, x, y); });
#pragma once

#include "kernels/cuda/thread.h"
#include "kernels/functors.h"

namespace serin::kernels::cuda {

template <UnaryFn kFn>
struct KnownFunction {
  float alpha, beta;
  __device__ float operator()(float x) const { return unary(kFn, x, alpha, beta); }
};

/// All others: a call for each element, and the code of all functions once.
struct AnyFunction {
  UnaryFn fn;
  float alpha, beta;
  [[gnu::noinline]] __device__ float operator()(float x) const { return unary(fn, x, alpha, beta); }
};

/// f(KnownFunction) if it is among kFirst, kRest...; otherwise f(AnyFunction).
template <UnaryFn kFirst, UnaryFn... kRest, class F>
auto with_function(const AnyFunction& any, F&& f) {
  if (any.fn == kFirst) return f(KnownFunction<kFirst>{any.alpha, any.beta});
  if constexpr (sizeof...(kRest) > 0)
    return with_function<kRest...>(any, f);
  else
    return f(any);
}

}  // namespace serin::kernels::cuda
