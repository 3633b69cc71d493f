// image_loops.h: The loops of image.h for one vector type; included by the image_*.cc files only.
//
// The compiler unrolls operations without a vector form in all types (gathers, strided sums) for the instruction set of the file.
#pragma once

#include "kernels/cpu/simd/image.h"

namespace serin::kernels::cpu {

template <class V>
void resample_row(const float* x, const int32_t* index, const float* weight, int64_t count, float* y, int64_t n) {
  if (count == 1) {
    for (int64_t i = 0; i < n; ++i) y[i] = weight[i] * x[index[i]];
    return;
  }
  const int32_t* index1 = index + n;
  const float* weight1 = weight + n;
  for (int64_t i = 0; i < n; ++i) y[i] = weight[i] * x[index[i]] + weight1[i] * x[index1[i]];
  for (int64_t k = 2; k < count; ++k) {
    const int32_t* index_k = index + k * n;
    const float* weight_k = weight + k * n;
    for (int64_t i = 0; i < n; ++i) y[i] += weight_k[i] * x[index_k[i]];
  }
}

template <class V>
void gather(const float* x, const int32_t* index, const float* weight, int64_t row, int64_t count, float* y, int64_t n) {
  const auto zero = V::set(0.f);
  for (int64_t i = 0; i < n; i += V::kWidth) {
    auto sum = zero;
    for (int64_t at = i; at < count * row; at += row) {
      const auto factor = V::load(weight + at);
      const auto seen = V::blend(V::equal(factor, zero), zero, V::gather(x, index + at));  // skipped elements may be NaN
      sum = V::fma(factor, seen, sum);
    }
    n - i < V::kWidth ? V::store_n(y + i, sum, static_cast<int>(n - i)) : V::store(y + i, sum);
  }
}

template <class V>
void mix_rows(const float* const* rows, const float* weight, int64_t count, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + V::kWidth <= n; i += V::kWidth) {
    typename V::F sum = V::set(weight[0]) * V::load(rows[0] + i);
    for (int64_t k = 1; k < count; ++k) sum = V::fma(V::set(weight[k]), V::load(rows[k] + i), sum);
    V::store(y + i, sum);
  }
  if (i == n) return;
  const int rest = static_cast<int>(n - i);
  typename V::F sum = V::set(weight[0]) * V::load_n(rows[0] + i, rest, 0.f);
  for (int64_t k = 1; k < count; ++k) sum = V::fma(V::set(weight[k]), V::load_n(rows[k] + i, rest, 0.f), sum);
  V::store_n(y + i, sum, rest);
}

template <class V>
void add(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}

template <class V>
void interleave(const float* x, int64_t x_row, int64_t parts, float* y, int64_t n) {
  if (parts == 2) {
    const float* odd = x + x_row;
    for (int64_t i = 0; i < n; ++i) y[2 * i] = x[i], y[2 * i + 1] = odd[i];
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t part = 0; part < parts; ++part) y[i * parts + part] = x[part * x_row + i];
  }
}

template <class V>
void repeat(const float* x, int64_t times, float* y, int64_t n) {
  if (times == 2) {
    for (int64_t i = 0; i < n; ++i) y[2 * i] = y[2 * i + 1] = x[i];
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < times; ++k) y[i * times + k] = x[i];
  }
}

template <class V, class T, bool kA, bool kB>
void select_steps(const bool* condition, const T* a, const T* b, T* y, int64_t n) {
  const auto* set = reinterpret_cast<const uint8_t*>(condition);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T mask = -static_cast<T>(set[i]);
    y[i] = (a[kA ? i : 0] & mask) | (b[kB ? i : 0] & ~mask);
  }
}

template <class V, class T>
void select_bits(const bool* condition, int64_t c_step, const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n) {
  if (c_step == 0) {
    const T* from = *condition ? a : b;
    const int64_t step = *condition ? a_step : b_step;
    if (step == 1) {
      for (int64_t i = 0; i < n; ++i) y[i] = from[i];
    } else {
      for (int64_t i = 0; i < n; ++i) y[i] = *from;
    }
    return;
  }
  if (a_step == 1 && b_step == 1) return select_steps<V, T, true, true>(condition, a, b, y, n);
  if (a_step == 1) return select_steps<V, T, true, false>(condition, a, b, y, n);
  if (b_step == 1) return select_steps<V, T, false, true>(condition, a, b, y, n);
  select_steps<V, T, false, false>(condition, a, b, y, n);
}

/// Moves bits, not numbers: a NaN keeps its payload.
template <class V>
void select(const bool* condition, int64_t c_step, const float* a, int64_t a_step, const float* b, int64_t b_step, float* y, int64_t n) {
  select_bits<V>(condition, c_step, reinterpret_cast<const int32_t*>(a), a_step, reinterpret_cast<const int32_t*>(b), b_step,
                 reinterpret_cast<int32_t*>(y), n);
}

/// Consecutive rows of x with kParts elements: images with channels last become planes.
template <class V, class T, int kParts>
void split_parts(const T* x, T* y, int64_t y_row, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) y[part * y_row + j] = x[j * kParts + part];
  }
}
/// The inverse.
template <class V, class T, int kParts>
void join_parts(const T* x, int64_t x_row, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) y[i * kParts + part] = x[i + part * x_row];
  }
}

/// Reads a block of kBlock x kBlock by rows of x, keeps it in registers and writes it by rows of y.
template <class V, class T>
void transpose(const T* x, int64_t x_row, T* y, int64_t y_row, int64_t rows, int64_t columns) {
  if (rows == 3 && x_row == 3) return split_parts<V, T, 3>(x, y, y_row, columns);
  if (rows == 4 && x_row == 4) return split_parts<V, T, 4>(x, y, y_row, columns);
  if (columns == 3 && y_row == 3) return join_parts<V, T, 3>(x, x_row, y, rows);
  if (columns == 4 && y_row == 4) return join_parts<V, T, 4>(x, x_row, y, rows);
  constexpr int64_t kBlock = 8;
  typedef T Row __attribute__((vector_size(kBlock * sizeof(T))));
  int64_t i = 0;
  for (; i + kBlock <= rows; i += kBlock) {
    int64_t j = 0;
    for (; j + kBlock <= columns; j += kBlock) {
      Row a[kBlock], b[kBlock];
      for (int64_t k = 0; k < kBlock; ++k) __builtin_memcpy(&a[k], x + i + (j + k) * x_row, sizeof(Row));
      // Three rounds of interleaving elements 4, 2 and 1 apart transpose eight rows of eight.
      for (int k = 0; k < 4; ++k) {
        b[2 * k] = __builtin_shufflevector(a[k], a[k + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        b[2 * k + 1] = __builtin_shufflevector(a[k], a[k + 4], 4, 12, 5, 13, 6, 14, 7, 15);
      }
      for (int k = 0; k < 4; ++k) {
        a[2 * k] = __builtin_shufflevector(b[k], b[k + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        a[2 * k + 1] = __builtin_shufflevector(b[k], b[k + 4], 4, 12, 5, 13, 6, 14, 7, 15);
      }
      for (int k = 0; k < 4; ++k) {
        b[2 * k] = __builtin_shufflevector(a[k], a[k + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        b[2 * k + 1] = __builtin_shufflevector(a[k], a[k + 4], 4, 12, 5, 13, 6, 14, 7, 15);
      }
      for (int64_t k = 0; k < kBlock; ++k) __builtin_memcpy(y + (i + k) * y_row + j, &b[k], sizeof(Row));
    }
    for (int64_t k = 0; k < kBlock; ++k) {
      for (int64_t rest = j; rest < columns; ++rest) y[(i + k) * y_row + rest] = x[i + k + rest * x_row];
    }
  }
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) y[i * y_row + j] = x[i + j * x_row];
  }
}

template <class V>
constexpr ImageLoops image_loops() {
  return {.resample_row = &resample_row<V>,
          .gather = &gather<V>,
          .mix_rows = &mix_rows<V>,
          .add = &add<V>,
          .interleave = &interleave<V>,
          .repeat = &repeat<V>,
          .select = &select<V>,
          .select_wide = &select_bits<V, int64_t>,
          .transpose = &transpose<V, float>,
          .transpose_half = &transpose<V, int16_t>};
}

}  // namespace serin::kernels::cpu
