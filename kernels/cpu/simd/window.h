// window.h: what a window sees, a vector of output pixels at a time: pooling, depthwise convolution, and the columns of a convolution.
//
// All planes of an operator have the same geometry, so what is to be read for a vector of neighbouring outputs is found once (a Tap for each cell of the
// window, kernels/cpu/window.h) and used for every plane. Padding is lanes that are not read: there are neither borders nor bounds in these loops, and
// narrow images cost as many instructions to a row as wide ones to a vector.
#pragma once

#include "kernels/cpu/simd/rows.h"
#include "kernels/cpu/simd/simd.h"

namespace serin::kernels::cpu {

/// How the elements of one tap lie: side by side, every other one, or anyhow.
enum class Step { kOne, kTwo, kAny };

template <class V, Step kStep>
typename V::F load_tap(const float* plane, const Tap& tap, int64_t stride, float fill) {
  if constexpr (kStep == Step::kOne) return V::load_lanes(plane + tap.offset, tap.lanes, fill);
  if constexpr (kStep == Step::kTwo) return V::load_even(plane + tap.offset, tap.lanes, tap.elements, fill);
  if constexpr (kStep == Step::kAny) return V::load_strided(plane + tap.offset, stride, tap.lanes, fill);
}

/// Calls loop<Step>() for the stride.
template <class F>
void with_step(int64_t stride, F&& loop) {
  if (stride == 1)
    loop.template operator()<Step::kOne>();
  else if (stride == 2)
    loop.template operator()<Step::kTwo>();
  else
    loop.template operator()<Step::kAny>();
}

template <class V, ReduceFn kFn>
void pool_planes(const Taps& taps, const float* counts, Planes<const float> x, Planes<float> y, int64_t planes, int n) {
  using R = Reduction<V, kFn>;
  const auto divisor = V::load_n(counts, n, 1.f);
  with_step(taps.stride, [&]<Step kStep>() {
    for (int64_t plane = 0; plane < planes; ++plane) {
      const float* source = x.data + plane * x.step;
      auto joined = V::set(R::kNeutral);
      for (int64_t t = 0; t < taps.count; ++t) joined = R::join(joined, load_tap<V, kStep>(source, taps.data[t], taps.stride, R::kNeutral));
      if constexpr (kFn == ReduceFn::kSum) joined = joined / divisor;
      V::store_n(y.data + plane * y.step, joined, n);
    }
  });
}

/// Each plane has a filter of its own: taps.count weights.
template <class V>
void depthwise_planes(const Taps& taps, const float* weight, const RowFinish& finish, Planes<const float> x, Planes<float> y,
                      int64_t planes, int n) {
  const auto low = V::set(finish.low), high = V::set(finish.high);
  with_step(taps.stride, [&]<Step kStep>() {
    for (int64_t plane = 0; plane < planes; ++plane, weight += taps.count) {
      const float* source = x.data + plane * x.step;
      auto sum = V::set(finish.bias ? finish.bias[plane] : 0.f);
      for (int64_t t = 0; t < taps.count; ++t) {
        sum = V::fma(V::set(weight[t]), load_tap<V, kStep>(source, taps.data[t], taps.stride, 0.f), sum);
      }
      V::store_n(y.data + plane * y.step, clip<V>(sum, low, high), n);
    }
  });
}

/// Rows are written whole vectors at a time, in rising order: what one vector writes too far the next overwrites.
template <class V>
void gather_columns(const Taps& taps, const int64_t* columns, int64_t chunks, Planes<const float> x, int64_t planes, float* panel) {
  with_step(taps.stride, [&]<Step kStep>() {
    for (int64_t plane = 0; plane < planes; ++plane) {
      const float* source = x.data + plane * x.step;
      for (const Tap *tap = taps.data, *end = tap + taps.count; tap != end; panel += 2 * V::kWidth) {
        for (int64_t k = 0; k < chunks; ++k, ++tap) V::store(panel + columns[k], load_tap<V, kStep>(source, *tap, taps.stride, 0.f));
      }
    }
  });
}

}  // namespace serin::kernels::cpu
