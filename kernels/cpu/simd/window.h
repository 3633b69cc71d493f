// window.h: Reads the inputs of a window for a vector of output pixels at a time: pooling, depthwise convolution, and a convolution's
// columns.
//
// All planes of an operator have the same geometry. So the addresses for a vector of adjacent outputs are computed once (a Tap for each
// cell of the window, kernels/cpu/window.h) and used for every plane. Padding is lanes that are not read: these loops have neither borders
// nor bounds.
#pragma once

#include "kernels/cpu/simd/rows.h"
#include "kernels/cpu/simd/simd.h"

namespace serin::kernels::cpu {

/// The layout of a tap's elements: adjacent, every other one, or any stride.
enum class Step { kOne, kTwo, kAny };

template <class V, Step kStep>
typename V::F load_tap(const float* plane, const Tap& tap, int64_t stride, float fill) {
  if constexpr (kStep == Step::kOne) return V::load_lanes(plane + tap.offset, tap.lanes, fill);
  if constexpr (kStep == Step::kTwo) return V::load_even(plane + tap.offset, tap.lanes, tap.elements, fill);
  if constexpr (kStep == Step::kAny) return V::load_strided(plane + tap.offset, stride, tap.lanes, fill);
}

// Arguments by value, and no lambdas: data reached through a reference is reloaded after every vector store, which may alias anything.

// Four planes at a time: a tap is read once for them, and their sums do not wait for each other.

template <class V, ReduceFn kFn, Step kStep, int kPlanes>
void pool_planes(Taps taps, typename V::F divisor, Planes<const float> x, Planes<float> y, int n) {
  using R = Reduction<V, kFn>;
  typename V::F joined[kPlanes];
#pragma GCC unroll 4
  for (int q = 0; q < kPlanes; ++q) joined[q] = V::set(R::kNeutral);
  for (int64_t t = 0; t < taps.count; ++t) {
    const Tap tap = taps.data[t];
#pragma GCC unroll 4
    for (int q = 0; q < kPlanes; ++q) {
      joined[q] = R::join(joined[q], load_tap<V, kStep>(x.data + q * x.step, tap, taps.stride, R::kNeutral));
    }
  }
#pragma GCC unroll 4
  for (int q = 0; q < kPlanes; ++q) V::store_n(y.data + q * y.step, kFn == ReduceFn::kSum ? joined[q] / divisor : joined[q], n);
}
template <class V, ReduceFn kFn, Step kStep>
void pool_all(Taps taps, const float* counts, Planes<const float> x, Planes<float> y, int64_t planes, int n) {
  const auto divisor = kFn == ReduceFn::kSum ? V::load_n(counts, n, 1.f) : V::set(1.f);
  for (; planes >= 4; planes -= 4, x.data += 4 * x.step, y.data += 4 * y.step) pool_planes<V, kFn, kStep, 4>(taps, divisor, x, y, n);
  for (; planes > 0; --planes, x.data += x.step, y.data += y.step) pool_planes<V, kFn, kStep, 1>(taps, divisor, x, y, n);
}
template <class V, ReduceFn kFn>
void pool(const Taps& taps, const float* counts, Planes<const float> x, Planes<float> y, int64_t planes, int n) {
  if (taps.stride == 1) return pool_all<V, kFn, Step::kOne>(taps, counts, x, y, planes, n);
  if (taps.stride == 2) return pool_all<V, kFn, Step::kTwo>(taps, counts, x, y, planes, n);
  pool_all<V, kFn, Step::kAny>(taps, counts, x, y, planes, n);
}

/// Each plane has its own filter: taps.count weights.
template <class V, Step kStep, int kPlanes>
void depthwise_planes(Taps taps, const float* weight, RowFinish finish, Planes<const float> x, Planes<float> y, int n) {
  typename V::F sum[kPlanes];
#pragma GCC unroll 4
  for (int q = 0; q < kPlanes; ++q) sum[q] = V::set(finish.bias ? finish.bias[q] : 0.f);
  for (int64_t t = 0; t < taps.count; ++t) {
    const Tap tap = taps.data[t];
#pragma GCC unroll 4
    for (int q = 0; q < kPlanes; ++q) {
      sum[q] = V::fma(V::set(weight[q * taps.count + t]), load_tap<V, kStep>(x.data + q * x.step, tap, taps.stride, 0.f), sum[q]);
    }
  }
#pragma GCC unroll 4
  for (int q = 0; q < kPlanes; ++q) V::store_n(y.data + q * y.step, clip<V>(sum[q], V::set(finish.low), V::set(finish.high)), n);
}
template <class V, Step kStep>
void depthwise_all(Taps taps, const float* weight, RowFinish finish, Planes<const float> x, Planes<float> y, int64_t planes, int n) {
  int64_t plane = 0;
  const auto advance = [&](int64_t count) {
    plane += count, weight += count * taps.count, x.data += count * x.step, y.data += count * y.step;
    if (finish.bias) finish.bias += count;
  };
  // NOLINTBEGIN(bugprone-infinite-loop): advance() moves `plane`
  for (; plane + 4 <= planes; advance(4)) depthwise_planes<V, kStep, 4>(taps, weight, finish, x, y, n);
  for (; plane < planes; advance(1)) depthwise_planes<V, kStep, 1>(taps, weight, finish, x, y, n);
  // NOLINTEND(bugprone-infinite-loop)
}
template <class V>
void depthwise(const Taps& taps, const float* weight, const RowFinish& finish, Planes<const float> x, Planes<float> y, int64_t planes,
               int n) {
  if (taps.stride == 1) return depthwise_all<V, Step::kOne>(taps, weight, finish, x, y, planes, n);
  if (taps.stride == 2) return depthwise_all<V, Step::kTwo>(taps, weight, finish, x, y, planes, n);
  depthwise_all<V, Step::kAny>(taps, weight, finish, x, y, planes, n);
}

/// Rows are written in whole vectors, in ascending order: the next vector overwrites what one writes too far.
template <class V, Step kStep>
void gather_planes(Taps taps, const int64_t* columns, int64_t chunks, Planes<const float> x, int64_t planes, float* panel) {
  const Tap* const end = taps.data + taps.count;
  for (int64_t plane = 0; plane < planes; ++plane, x.data += x.step) {
    for (const Tap* tap = taps.data; tap != end; tap += chunks, panel += 2 * V::kWidth) {
      for (int64_t k = 0; k < chunks; ++k) V::store(panel + columns[k], load_tap<V, kStep>(x.data, tap[k], taps.stride, 0.f));
    }
  }
}
template <class V>
void gather_columns(const Taps& taps, const int64_t* columns, int64_t chunks, Planes<const float> x, int64_t planes, float* panel) {
  if (taps.stride == 1) return gather_planes<V, Step::kOne>(taps, columns, chunks, x, planes, panel);
  if (taps.stride == 2) return gather_planes<V, Step::kTwo>(taps, columns, chunks, x, planes, panel);
  gather_planes<V, Step::kAny>(taps, columns, chunks, x, planes, panel);
}

}  // namespace serin::kernels::cpu
