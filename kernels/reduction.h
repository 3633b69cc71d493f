// reduction.h: The arithmetic of reductions, one source for all backends, in any order of the elements.
//
// It defines the start value of a reduction, the term of each element, the joining of two partial results and the final value.
//
// S is the type of the sums: at least as wide as the elements. A reduction over nothing gives its neutral element: 0, 1, -Inf (for integers
// the lowest) for Max, +Inf for Min. A Mean of nothing is NaN (0 for integers). NaN in Max and Min stays.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/functors.h"
#include "kernels/op.h"

namespace serin::kernels {

template <class S>
SERIN_HD inline S neutral(ReduceFn fn) {
  using Limits = std::numeric_limits<S>;
  switch (fn) {
    case ReduceFn::kProd: return S(1);
    case ReduceFn::kMax: return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case ReduceFn::kMin: return Limits::has_infinity ? Limits::infinity() : Limits::max();
    default: return S(0);
  }
}

/// An element as it is combined: |x|, x * x, or x.
template <class S>
SERIN_HD inline S reduced_term(ReduceFn fn, S x) {
  if (fn == ReduceFn::kL1) return unary(UnaryFn::kAbs, x, 0.f, 0.f);
  if (fn == ReduceFn::kL2 || fn == ReduceFn::kSumSquare) return binary(BinaryFn::kMul, x, x);
  return x;
}

template <class S>
SERIN_HD inline S combined(ReduceFn fn, S a, S b) {
  switch (fn) {
    case ReduceFn::kMax: return maximum(a, b);
    case ReduceFn::kMin: return minimum(a, b);
    case ReduceFn::kProd: return binary(BinaryFn::kMul, a, b);
    default: return binary(BinaryFn::kAdd, a, b);
  }
}

/// The element of type T that `count` terms reduce to. With no terms it is T's own extreme, not that of the wider S.
template <class T, class S>
SERIN_HD inline T reduced(ReduceFn fn, S sum, int64_t count) {
  if constexpr (std::is_integral_v<T>) {
    if (count == 0 && fn == ReduceFn::kMax) return std::numeric_limits<T>::lowest();
    if (count == 0 && fn == ReduceFn::kMin) return std::numeric_limits<T>::max();
  }
  if (fn == ReduceFn::kMean) return cast<T>(divide(sum, static_cast<S>(count)));
  if (fn == ReduceFn::kL2) return cast<T>(cast<S>(std::sqrt(static_cast<double>(sum))));
  return cast<T>(sum);
}

/// Whether x at index i is a better candidate for ArgMax (ArgMin if `min`) than `best` at index `at`. NaN is better than everything; of
/// equal elements the first wins, or the last.
template <class C>
SERIN_HD inline bool is_better(C x, int64_t i, C best, int64_t at, bool min, bool last) {
  const bool x_nan = x != x, best_nan = best != best;
  if (x_nan != best_nan) return x_nan;
  if (x_nan || x == best) return last ? i > at : i < at;
  return min ? x < best : x > best;
}

/// The best of some candidates and its index; -1: no candidate.
template <class C>
struct Best {
  int64_t at = -1;
  C value{};
};
template <class C>
SERIN_HD inline Best<C> better_of(Best<C> a, Best<C> b, bool min, bool last) {
  if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
  return is_better(b.value, b.at, a.value, a.at, min, last) ? b : a;
}

}  // namespace serin::kernels
