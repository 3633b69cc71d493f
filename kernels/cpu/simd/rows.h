// rows.h: Reductions, softmax and layer normalisation of rows of floats.
//
// Sums are kept in four vectors of partial sums, which makes the additions independent (speed) and the sums short (accuracy).
#pragma once

#include "kernels/cpu/simd/elementwise.h"
#include "kernels/cpu/simd/math.h"

namespace serin::kernels::cpu {

/// How one reduction maps an element and joins two partial results.
template <class V, ReduceFn kFn>
struct Reduction {
  using F = typename V::F;
  static constexpr float kNeutral = kFn == ReduceFn::kMax    ? -__builtin_inff()
                                    : kFn == ReduceFn::kMin  ? __builtin_inff()
                                    : kFn == ReduceFn::kProd ? 1.f
                                                             : 0.f;
  static F map(F x) {
    if constexpr (kFn == ReduceFn::kL1)
      return V::abs(x);
    else if constexpr (kFn == ReduceFn::kL2 || kFn == ReduceFn::kSumSquare)
      return x * x;
    else
      return x;
  }
  static F join(F a, F b) {
    if constexpr (kFn == ReduceFn::kMax)
      return max_nan<V>(a, b);
    else if constexpr (kFn == ReduceFn::kMin)
      return min_nan<V>(a, b);
    else if constexpr (kFn == ReduceFn::kProd)
      return a * b;
    else
      return a + b;
  }
  static F finish(F x, int64_t n) {
    if constexpr (kFn == ReduceFn::kMean)
      return x / V::set(static_cast<float>(n));
    else if constexpr (kFn == ReduceFn::kL2)
      return V::sqrt(x);
    else
      return x;
  }
};

/// All elements of a vector joined, in every element of the result.
template <class V, class R, int kStep = V::kWidth / 2>
typename V::F join_elements(typename V::F x) {
  if constexpr (kStep > 0) return join_elements<V, R, kStep / 2>(R::join(x, V::template swap<kStep>(x)));
  return x;
}

/// map(x[i]) for i in [0, n) joined, in every element of the result.
template <class V, class R, class Map>
typename V::F reduce_row(const float* x, int64_t n, Map&& map) {
  typename V::F partial[4] = {V::set(R::kNeutral), V::set(R::kNeutral), V::set(R::kNeutral), V::set(R::kNeutral)};
  int64_t i = 0;
  for (; i + 4 * V::kWidth <= n; i += 4 * V::kWidth) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) partial[k] = R::join(partial[k], map(V::load(x + i + k * V::kWidth)));
  }
  for (; i + V::kWidth <= n; i += V::kWidth) partial[0] = R::join(partial[0], map(V::load(x + i)));
  if (i < n) {
    // Elements after the end are replaced after map(), which need not keep the neutral value neutral.
    const int rest = static_cast<int>(n - i);
    partial[1] = R::join(partial[1], V::keep_n(map(V::load_n(x + i, rest, R::kNeutral)), rest, V::set(R::kNeutral)));
  }
  return join_elements<V, R>(R::join(R::join(partial[0], partial[1]), R::join(partial[2], partial[3])));
}

template <class V, ReduceFn kFn>
void reduce_rows(const float* x, float* y, int64_t rows, int64_t n) {
  using R = Reduction<V, kFn>;
  for (int64_t row = 0; row < rows; ++row) y[row] = R::finish(reduce_row<V, R>(x + row * n, n, R::map), n)[0];
}

/// Four vectors at a time: a row of them is whole cache lines.
template <class V, ReduceFn kFn>
void reduce_columns(const float* x, int64_t x_row, float* y, int64_t n, int64_t columns) {
  using R = Reduction<V, kFn>;
  int64_t c = 0;
  for (; c + 4 * V::kWidth <= columns; c += 4 * V::kWidth) {
    typename V::F sum[4] = {V::set(R::kNeutral), V::set(R::kNeutral), V::set(R::kNeutral), V::set(R::kNeutral)};
    for (int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) sum[k] = R::join(sum[k], R::map(V::load(x + i * x_row + c + k * V::kWidth)));
    }
    for (int k = 0; k < 4; ++k) V::store(y + c + k * V::kWidth, R::finish(sum[k], n));
  }
  for (; c < columns; c += V::kWidth) {
    const int width = columns - c < V::kWidth ? static_cast<int>(columns - c) : V::kWidth;
    auto sum = V::set(R::kNeutral);
    for (int64_t i = 0; i < n; ++i) {
      const float* p = x + i * x_row + c;
      sum = R::join(sum, R::map(width == V::kWidth ? V::load(p) : V::load_n(p, width, R::kNeutral)));
    }
    V::store_n(y + c, R::finish(sum, n), width);
  }
}

template <class V, template <class, ReduceFn> class Loop>
auto reduce_loop_of(ReduceFn fn) -> decltype(Loop<V, ReduceFn::kSum>::get()) {
  switch (fn) {
    case ReduceFn::kSum: return Loop<V, ReduceFn::kSum>::get();
    case ReduceFn::kMean: return Loop<V, ReduceFn::kMean>::get();
    case ReduceFn::kMax: return Loop<V, ReduceFn::kMax>::get();
    case ReduceFn::kMin: return Loop<V, ReduceFn::kMin>::get();
    case ReduceFn::kProd: return Loop<V, ReduceFn::kProd>::get();
    case ReduceFn::kL1: return Loop<V, ReduceFn::kL1>::get();
    case ReduceFn::kL2: return Loop<V, ReduceFn::kL2>::get();
    case ReduceFn::kSumSquare: return Loop<V, ReduceFn::kSumSquare>::get();
  }
  return nullptr;
}
template <class V, ReduceFn kFn>
struct RowsLoop {
  static ReduceRowsLoop get() { return &reduce_rows<V, kFn>; }
};
template <class V, ReduceFn kFn>
struct ColumnsLoop {
  static ReduceColumnsLoop get() { return &reduce_columns<V, kFn>; }
};

/// Three passes over a row: its maximum; e^(x - max) with their sum; the division. log: the second pass only sums. Results may be subnormal,
/// since models take their logarithm.
template <class V>
void softmax_rows(const float* x, float* y, int64_t rows, int64_t n, bool log) {
  using Max = Reduction<V, ReduceFn::kMax>;
  using Sum = Reduction<V, ReduceFn::kSum>;
  for (int64_t row = 0; row < rows; ++row, x += n, y += n) {
    const auto max = reduce_row<V, Max>(x, n, Max::map);
    if (log) {
      const auto log_sum = math::log<V>(reduce_row<V, Sum>(x, n, [max](typename V::F v) { return math::exp_of_difference<V>(v - max); }));
      for (int64_t i = 0; i < n; i += V::kWidth) {
        const int width = n - i < V::kWidth ? static_cast<int>(n - i) : V::kWidth;
        V::store_n(y + i, (V::load_n(x + i, width, 0.f) - max) - log_sum, width);
      }
      continue;
    }
    auto sum = V::set(0.f);
    int64_t i = 0;
    for (; i + V::kWidth <= n; i += V::kWidth) {
      const auto e = math::exp<V>(V::load(x + i) - max);
      V::store(y + i, e);
      sum = sum + e;
    }
    const int rest = static_cast<int>(n - i);
    auto last = V::set(0.f);  // kept: a processor cannot forward a partial store to the next load
    if (rest > 0) {
      last = V::keep_n(math::exp<V>(V::load_n(x + i, rest, 0.f) - max), rest, last);
      sum = sum + last;
    }
    const auto total = join_elements<V, Sum>(sum);
    for (int64_t k = 0; k < i; k += V::kWidth) V::store(y + k, V::load(y + k) / total);
    if (rest > 0) V::store_n(y + i, last / total, rest);
  }
}

/// The same over columns, x_row apart in x and y, two vectors of them at a time. A few rows are kept in a buffer: rows of an image whose
/// size is a power of two would all use the same lines of the cache.
template <class V>
void softmax_columns(const float* x, float* y, int64_t row, int64_t n, int64_t columns, bool log) {
  constexpr int64_t kBlock = 2 * V::kWidth, kHeld = 128;
  float held[kHeld * kBlock];
  for (int64_t c = 0; c < columns; c += V::kWidth) {
    const int width = columns - c < V::kWidth ? static_cast<int>(columns - c) : V::kWidth;
    const bool two = columns - c >= kBlock;
    float* const e = n <= kHeld ? held : y + c;
    const int64_t e_row = n <= kHeld ? kBlock : row;
    const auto store = [width](float* to, typename V::F value) { width == V::kWidth ? V::store(to, value) : V::store_n(to, value, width); };
    typename V::F max[2] = {V::set(-__builtin_inff()), V::set(-__builtin_inff())}, sum[2] = {V::set(0.f), V::set(0.f)};
    for (int64_t i = 0; i < n; ++i) {
      for (int k = 0; k <= (two ? 1 : 0); ++k) {
        const float* from = x + i * row + c + k * V::kWidth;
        max[k] = max_nan<V>(max[k], width == V::kWidth ? V::load(from) : V::load_n(from, width, 0.f));
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int k = 0; k <= (two ? 1 : 0); ++k) {
        const float* from = x + i * row + c + k * V::kWidth;
        const auto shifted = (width == V::kWidth ? V::load(from) : V::load_n(from, width, 0.f)) - max[k];
        const auto power = math::exp<V>(shifted);
        sum[k] = sum[k] + power;
        store(e + i * e_row + k * V::kWidth, log ? shifted : power);
      }
    }
    for (int k = 0; k <= (two ? 1 : 0); ++k) sum[k] = log ? math::log<V>(sum[k]) : V::set(1.f) / sum[k];
    for (int64_t i = 0; i < n; ++i) {
      for (int k = 0; k <= (two ? 1 : 0); ++k) {
        const float* from = e + i * e_row + k * V::kWidth;
        const auto value = width == V::kWidth ? V::load(from) : V::load_n(from, width, 0.f);
        store(y + i * row + c + k * V::kWidth, log ? value - sum[k] : value * sum[k]);
      }
    }
    if (two) c += V::kWidth;
  }
}

/// y[column] = the index of the largest (of the smallest, if sign is -1) of n < 2^24 elements that are `row` apart, the first or the last
/// of equals. False if there is a NaN: its rules differ.
template <class V>
bool arg_columns(const float* x, int64_t row, int64_t n, int64_t columns, float sign, bool last, int64_t* y) {
  using F = typename V::F;
  constexpr int kVectors = 4;
  const F factor = V::set(sign), one = V::set(1.f);
  F nan = V::set(0.f);
  for (int64_t c = 0; c < columns; c += kVectors * V::kWidth) {
    F best[kVectors], place[kVectors];
    int width[kVectors];
    for (int k = 0; k < kVectors; ++k) {
      const int64_t left = columns - c - k * V::kWidth;
      width[k] = left >= V::kWidth ? V::kWidth : left > 0 ? static_cast<int>(left) : 0;
      best[k] = V::set(-__builtin_inff());
      place[k] = V::set(0.f);
    }
    for (int64_t i = 0; i < n; ++i) {
      const F now = V::set(static_cast<float>(i));
      for (int k = 0; k < kVectors; ++k) {
        if (width[k] == 0) break;
        const float* from = x + i * row + c + k * V::kWidth;
        const F value = factor * (width[k] == V::kWidth ? V::load(from) : V::load_n(from, width[k], 0.f));
        nan = V::blend(V::is_nan(value), one, nan);
        const auto better = last ? V::less_equal(best[k], value) : V::less(best[k], value);
        best[k] = V::blend(better, value, best[k]);
        place[k] = V::blend(better, now, place[k]);
      }
    }
    for (int k = 0; k < kVectors; ++k) {
      float places[V::kWidth];
      V::store(places, place[k]);
      for (int j = 0; j < width[k]; ++j) y[c + k * V::kWidth + j] = static_cast<int64_t>(places[j]);
    }
  }
  return !V::any(V::less(V::set(0.f), nan));
}

/// y[row] = log of the sum of e^x[row, 0..n).
template <class V>
void log_sum_exp_rows(const float* x, float* y, int64_t rows, int64_t n) {
  using Max = Reduction<V, ReduceFn::kMax>;
  using Sum = Reduction<V, ReduceFn::kSum>;
  const auto infinity = V::set(__builtin_inff());
  for (int64_t row = 0; row < rows; ++row, x += n) {
    const auto largest = reduce_row<V, Max>(x, n, Max::map);
    const auto max = V::blend(V::equal(V::abs(largest), infinity), V::set(0.f), largest);  // infinity less itself would be NaN
    y[row] = (math::log<V>(reduce_row<V, Sum>(x, n, [max](typename V::F v) { return math::exp<V>(v - max); })) + max)[0];
  }
}

template <class V>
void layer_norm_rows(const float* x, const float* scale, const float* bias, float* y, int64_t rows, int64_t n, float epsilon) {
  using Sum = Reduction<V, ReduceFn::kSum>;
  const auto count = V::set(static_cast<float>(n));
  for (int64_t row = 0; row < rows; ++row, x += n, y += n) {
    const auto mean = reduce_row<V, Sum>(x, n, Sum::map) / count;
    const auto squares = reduce_row<V, Sum>(x, n, [mean](typename V::F v) { return (v - mean) * (v - mean); });
    const auto factor = V::set(1.f) / V::sqrt(squares / count + V::set(epsilon));
    for (int64_t i = 0; i < n; i += V::kWidth) {
      const int width = n - i < V::kWidth ? static_cast<int>(n - i) : V::kWidth;
      const auto normal = (V::load_n(x + i, width, 0.f) - mean) * factor;
      const auto shift = bias ? V::load_n(bias + i, width, 0.f) : V::set(0.f);
      V::store_n(y + i, V::fma(normal, V::load_n(scale + i, width, 0.f), shift), width);
    }
  }
}

}  // namespace serin::kernels::cpu
