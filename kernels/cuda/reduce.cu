// reduce.cu: Reduce over any axes, ArgMax, CumSum.
//
// The kept axes number the results, the reduced ones the terms of each: two spaces over the same memory. Where the last axis is reduced a warp takes a
// result and its lanes neighbouring terms; where it is kept, the lanes take neighbouring results, and the warps of a block share the terms of each. In
// both cases a warp reads runs of memory. What nothing reduces to, NaN and wrapping are those of kernels/ref/reduce.cc.

#include <limits>

#include "kernels/cuda/block.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"
#include "kernels/functors.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;
using ref::visit_dtype;

/// Floats are summed in float (double in double), integers in 64 bits: they wrap.
template <class T>
using sum_t = std::conditional_t<kIsFloatKind<T>, compute_t<T>, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <class S>
__device__ S neutral(ReduceFn fn) {
  using Limits = std::numeric_limits<S>;
  switch (fn) {
    case ReduceFn::kProd: return S(1);
    case ReduceFn::kMax: return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case ReduceFn::kMin: return Limits::has_infinity ? Limits::infinity() : Limits::max();
    default: return S(0);
  }
}

/// One term as it is combined: |x|, x * x, or x.
template <class S>
__device__ S term(ReduceFn fn, S x) {
  if (fn == ReduceFn::kL1) return unary(UnaryFn::kAbs, x, 0.f, 0.f);
  if (fn == ReduceFn::kL2 || fn == ReduceFn::kSumSquare) return binary(BinaryFn::kMul, x, x);
  return x;
}

template <class S>
struct Combine {
  ReduceFn fn;
  __device__ S operator()(S a, S b) const {
    switch (fn) {
      case ReduceFn::kMax: return maximum(a, b);
      case ReduceFn::kMin: return minimum(a, b);
      case ReduceFn::kProd: return binary(BinaryFn::kMul, a, b);
      default: return binary(BinaryFn::kAdd, a, b);
    }
  }
};

template <class T>
__device__ T finish(ReduceFn fn, sum_t<T> sum, int64_t count) {
  using S = sum_t<T>;
  if constexpr (std::is_integral_v<T>) {
    if (count == 0 && fn == ReduceFn::kMax) return std::numeric_limits<T>::lowest();
    if (count == 0 && fn == ReduceFn::kMin) return std::numeric_limits<T>::max();
  }
  if (fn == ReduceFn::kMean) return cast<T>(divide(sum, static_cast<S>(count)));
  if (fn == ReduceFn::kL2) return cast<T>(cast<S>(std::sqrt(static_cast<double>(sum))));
  return cast<T>(sum);
}

constexpr int kRows = 4;  // warps of a block

/// A warp for each result.
template <class T>
__global__ void reduce_last(ReduceFn fn, const T* x, T* y, Space<1> kept, Space<1> reduced) {
  using S = sum_t<T>;
  const Combine<S> combine{fn};
  const int64_t result = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.y;
  if (result >= kept.elements) return;
  int64_t start[1], at[1];
  kept.locate(result, start);
  S sum = neutral<S>(fn);
  for (int64_t i = threadIdx.x; i < reduced.elements; i += 32) {
    reduced.locate(i, at);
    sum = combine(sum, term(fn, static_cast<S>(load(x[start[0] + at[0]]))));
  }
  sum = combine_warp(sum, combine);
  if (threadIdx.x == 0) y[result] = finish<T>(fn, sum, reduced.elements);
}

constexpr int kSharers = 8;  // warps that share the terms of 32 results

template <class T>
__global__ void reduce_first(ReduceFn fn, const T* x, T* y, Space<1> kept, Space<1> reduced) {
  using S = sum_t<T>;
  S* const parts = shared_memory<S>();  // [kSharers, 32]
  const Combine<S> combine{fn};
  const int64_t result = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
  S sum = neutral<S>(fn);
  if (result < kept.elements) {
    int64_t start[1], at[1];
    kept.locate(result, start);
    for (int64_t i = threadIdx.y; i < reduced.elements; i += kSharers) {
      reduced.locate(i, at);
      sum = combine(sum, term(fn, static_cast<S>(load(x[start[0] + at[0]]))));
    }
  }
  parts[threadIdx.y * 32 + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || result >= kept.elements) return;
  for (int i = 1; i < kSharers; ++i) sum = combine(sum, parts[i * 32 + static_cast<int>(threadIdx.x)]);
  y[result] = finish<T>(fn, sum, reduced.elements);
}

/// An axis and what lies before and after it.
struct Line {
  int64_t outer, size, inner;
  Line(const Shape& shape, int64_t axis)
      : outer(product(shape, 0, static_cast<size_t>(axis))),
        size(shape[static_cast<size_t>(axis)]),
        inner(product(shape, static_cast<size_t>(axis) + 1, shape.rank())) {}
  int64_t lines() const { return outer * inner; }
};

/// NaN wins, the first of them; then the better number; then the first, or the last, of equals.
template <class C>
__device__ bool is_better(C x, int64_t i, C best, int64_t at, bool min, bool last) {
  const bool x_nan = x != x, best_nan = best != best;
  if (x_nan || best_nan) return x_nan == best_nan ? (last ? i > at : i < at) : x_nan;
  if (x == best) return last ? i > at : i < at;
  return min ? x < best : x > best;
}

/// A warp for each line: neighbouring elements where the axis is the last, else each lane walks.
template <class T>
__global__ void arg_max_lines(const T* x, int64_t* y, int64_t lines, int64_t size, int64_t inner, bool min, bool last) {
  using C = compute_t<T>;
  const int64_t line = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.y;
  if (line >= lines) return;
  x += line / inner * size * inner + line % inner;
  int64_t at = threadIdx.x < size ? threadIdx.x : 0;
  C best = load(x[at * inner]);
  for (int64_t i = at + 32; i < size; i += 32) {
    const C value = load(x[i * inner]);
    if (is_better(value, i, best, at, min, last)) best = value, at = i;
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    const C value = __shfl_xor_sync(0xFFFFFFFFu, best, lanes);
    const int64_t i = __shfl_xor_sync(0xFFFFFFFFu, at, lanes);
    if (is_better(value, i, best, at, min, last)) best = value, at = i;
  }
  if (threadIdx.x == 0) y[line] = at;
}

/// A thread for each line: sums along an axis are rare, and long lines rarer.
template <class T>
__global__ void cum_sum_lines(const T* x, T* y, int64_t lines, int64_t size, int64_t inner, bool exclusive, bool reverse) {
  using S = sum_t<T>;
  for (int64_t line = first_element(); line < lines; line += element_step()) {
    const int64_t start = line / inner * size * inner + line % inner;
    S sum = 0;
    for (int64_t step = 0; step < size; ++step) {
      const int64_t at = start + (reverse ? size - 1 - step : step) * inner;
      const S next = binary(BinaryFn::kAdd, sum, static_cast<S>(load(x[at])));
      y[at] = cast<T>(exclusive ? sum : next);
      sum = next;
    }
  }
}

}  // namespace

Prepared prepare_reduce(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Reduce>(desc.op);
  const Shape& x = desc.inputs[0].shape;
  Shape kept = x, reduced = x;
  bool last = false;  // of the axes of more than one element
  for (size_t axis = 0; axis < x.rank(); ++axis) {
    const bool is_reduced = std::ranges::find(op.axes, static_cast<int64_t>(axis)) != op.axes.end();
    (is_reduced ? kept : reduced)[axis] = 1;
    if (x[axis] != 1) last = is_reduced;
  }
  const Space<1> kept_space(kept, {row_major_strides(x)}), reduced_space(reduced, {row_major_strides(x)});
  return ref::for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([fn = op.fn, kept_space, reduced_space, last](Stream& stream, Inputs in, Outputs out) -> Fault {
      if (last) {
        return launch(stream, {blocks_for(kept_space.elements, kRows), dim3(32, kRows)}, reduce_last<T>, fn, in[0].as<const T>(),
                      out[0].as<T>(), kept_space, reduced_space);
      }
      return launch(stream, {blocks_for(kept_space.elements, 32), dim3(32, kSharers), kSharers * 32 * sizeof(sum_t<T>)}, reduce_first<T>,
                    fn, in[0].as<const T>(), out[0].as<T>(), kept_space, reduced_space);
    });
  });
}

Prepared prepare_arg_max(const OpDesc& desc, PrepareContext&, std::string& why) {
  const ArgMax op = std::get<ArgMax>(desc.op);
  const Line line(desc.inputs[0].shape, op.axis);
  if (line.size == 0) return refuse(why, "the axis has no elements");
  return ref::for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([op, line](Stream& stream, Inputs in, Outputs out) -> Fault {
      return launch(stream, {blocks_for(line.lines(), kRows), dim3(32, kRows)}, arg_max_lines<T>, in[0].as<const T>(), out[0].as<int64_t>(),
                    line.lines(), line.size, line.inner, op.min, op.last);
    });
  });
}

Prepared prepare_cum_sum(const OpDesc& desc, PrepareContext&, std::string& why) {
  const CumSum op = std::get<CumSum>(desc.op);
  const Line line(desc.inputs[0].shape, op.axis);
  return ref::for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([op, line](Stream& stream, Inputs in, Outputs out) -> Fault {
      return launch(stream, {blocks_for(line.lines(), 128), 128}, cum_sum_lines<T>, in[0].as<const T>(), out[0].as<T>(), line.lines(),
                    line.size, line.inner, op.exclusive, op.reverse);
    });
  });
}

}  // namespace serin::kernels::cuda
