// blocked_window.h: Loops that treat each channel separately: depthwise convolution, pooling, means, scaling, and conversion from and to
// plain.
//
// A depthwise convolution sums strips of adjacent outputs. The weight of a cell is read once for the strip. With three or five cells in a
// row, known at compile time, so is each pixel. In wide images the few pixels whose window overlaps a side are computed one by one, over
// the cells inside. In narrow ones they would be the majority. So each row of x is copied with its padding into a ring of rows in the L1
// cache, which has no sides.
//
// Everything here is a template over V, even functions without vectors: the linker keeps one copy of a plain inline function for all
// instruction sets.
#pragma once

#include "kernels/cpu/simd/blocked.h"

namespace serin::kernels::cpu {

/// Cells [first, last) of an axis that are inside [0, size) for the output whose window begins at `begin`.
template <class V>
struct CellsInside {
  int64_t first, last;
  CellsInside(int64_t begin, int64_t kernel, int64_t dilation, int64_t size) {
    first = begin < 0 ? (-begin + dilation - 1) / dilation : 0;
    last = begin >= size ? 0 : (size - begin + dilation - 1) / dilation;
    if (last > kernel) last = kernel;
    if (first > last) first = last;
  }
};

/// Outputs [first, last) of a row whose windows are inside it.
template <class V>
struct RowInside {
  int64_t first, last;
  explicit RowInside(const BlockedPlane& g) {
    first = (g.pad_w + g.stride_w - 1) / g.stride_w;
    const int64_t room = g.w + g.pad_w - (g.kernel_w - 1) * g.dilation_w - 1;  // the last possible start of a window
    last = room < 0 ? 0 : room / g.stride_w + 1;
    if (last > g.ow) last = g.ow;
    if (first > last) first = last;
  }
};

template <class V>
struct DepthwiseArgs {
  BlockedPlane plane;
  const float* weight;
  typename V::F bias, low, high;
};

/// Rows of x up to `end` are in the ring.
template <class V>
void fill_ring(const BlockedPlane& g, RowRing& ring, int64_t end) {
  constexpr int64_t kWidth = V::kWidth;
  const auto zero = V::set(0.f);
  if (ring.ready == 0) {
    for (int64_t row = 0; row < ring.rows; ++row) {
      float* line = ring.data + row * ring.width * kWidth;
      for (int64_t i = 0; i < g.pad_w && i < ring.width; ++i) V::store(line + i * kWidth, zero);
      for (int64_t i = g.pad_w + g.w; i < ring.width; ++i) V::store(line + i * kWidth, zero);
    }
  }
  const int64_t count = g.w < ring.width - g.pad_w ? g.w : ring.width - g.pad_w;
  for (; ring.ready < end; ++ring.ready) {
    float* line = ring.data + (ring.ready % ring.rows * ring.width + g.pad_w) * kWidth;
    const float* x = g.x + ring.ready * g.w * kWidth;
    for (int64_t i = 0; i < count; ++i) V::store(line + i * kWidth, V::load(x + i * kWidth));
  }
}

/// Pixel (row, -pad_w) of x, which need not exist.
template <class V>
const float* line_of(const BlockedPlane& g, const RowRing& ring, int64_t row) {
  return ring.data ? ring.data + row % ring.rows * ring.width * V::kWidth : g.x + (row * g.w - g.pad_w) * V::kWidth;
}

/// kPixels outputs from (oh, ow) on; kStride and kCells are of the row; 0: known at run time only.
template <class V, int kPixels, int kStride, int kCells>
void depthwise_strip(const DepthwiseArgs<V>& a, const RowRing& ring, int64_t oh, int64_t ow) {
  using F = typename V::F;
  constexpr int64_t kWidth = V::kWidth;
  const BlockedPlane& g = a.plane;
  const int64_t stride = (kStride ? kStride : g.stride_w) * kWidth, dilation = (kCells ? 1 : g.dilation_w) * kWidth;
  const int64_t top = oh * g.stride_h - g.pad_h;
  const CellsInside<V> rows(top, g.kernel_h, g.dilation_h, g.h);
  F sum[kPixels];
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) sum[p] = a.bias;
  for (int64_t kh = rows.first; kh < rows.last; ++kh) {
    const float* x = line_of<V>(g, ring, top + kh * g.dilation_h) + ow * g.stride_w * kWidth;
    const float* w = a.weight + kh * g.kernel_w * kWidth;
    const auto cell = [&](int64_t kw) {
      const F weight = V::load(w + kw * kWidth);
#pragma GCC unroll 16
      for (int p = 0; p < kPixels; ++p) sum[p] = V::accumulate(V::load(x + p * stride + kw * dilation), weight, sum[p]);
    };
    if constexpr (kCells > 0) {
#pragma GCC unroll 5
      for (int64_t kw = 0; kw < kCells; ++kw) cell(kw);
    } else {
      for (int64_t kw = 0; kw < g.kernel_w; ++kw) cell(kw);
    }
  }
  float* y = g.y + (oh * g.ow + ow) * kWidth;
#pragma GCC unroll 16
  for (int p = 0; p < kPixels; ++p) V::store(y + p * kWidth, V::min(a.high, V::max(a.low, sum[p])));
}

/// One output, over the cells inside x.
template <class V>
void depthwise_pixel(const DepthwiseArgs<V>& a, int64_t oh, int64_t ow) {
  constexpr int64_t kWidth = V::kWidth;
  const BlockedPlane& g = a.plane;
  const int64_t top = oh * g.stride_h - g.pad_h, left = ow * g.stride_w - g.pad_w;
  const CellsInside<V> rows(top, g.kernel_h, g.dilation_h, g.h), columns(left, g.kernel_w, g.dilation_w, g.w);
  auto sum = a.bias;
  for (int64_t kh = rows.first; kh < rows.last; ++kh) {
    for (int64_t kw = columns.first; kw < columns.last; ++kw) {
      const float* x = g.x + ((top + kh * g.dilation_h) * g.w + left + kw * g.dilation_w) * kWidth;
      sum = V::fma(V::load(x), V::load(a.weight + (kh * g.kernel_w + kw) * kWidth), sum);
    }
  }
  V::store(g.y + (oh * g.ow + ow) * kWidth, V::min(a.high, V::max(a.low, sum)));
}

/// Outputs [first, last) of row oh, whose windows are all inside. The last strip starts early enough to be whole; what it repeats is equal.
template <class V, int kPixels, int kStride, int kCells>
void depthwise_inside(const DepthwiseArgs<V>& a, const RowRing& ring, int64_t oh, int64_t first, int64_t last) {
  if constexpr (kPixels > 1) {
    if (last - first < kPixels) return depthwise_inside<V, kPixels / 2, kStride, kCells>(a, ring, oh, first, last);
  }
  for (int64_t ow = first; ow < last; ow += kPixels) {
    depthwise_strip<V, kPixels, kStride, kCells>(a, ring, oh, ow + kPixels <= last ? ow : last - kPixels);
  }
}

template <class V, int kStride, int kCells>
void depthwise_rows(const DepthwiseArgs<V>& a, RowRing& ring, int64_t row, int64_t rows) {
  constexpr int kMany = V::kGemmRows > 8 ? 8 : 4;
  const BlockedPlane& g = a.plane;
  const RowInside<V> inside(g);
  for (int64_t oh = row; oh < row + rows; ++oh) {
    if (!ring.data) {
      for (int64_t ow = 0; ow < inside.first; ++ow) depthwise_pixel<V>(a, oh, ow);
      if (inside.first < inside.last) depthwise_inside<V, kMany, kStride, kCells>(a, ring, oh, inside.first, inside.last);
      for (int64_t ow = inside.last; ow < g.ow; ++ow) depthwise_pixel<V>(a, oh, ow);
      continue;
    }
    const int64_t end = oh * g.stride_h - g.pad_h + (g.kernel_h - 1) * g.dilation_h + 1;
    fill_ring<V>(g, ring, end < g.h ? end : g.h);
    if (kMany == 8 && g.ow % 7 == 0)
      depthwise_inside<V, 7, kStride, kCells>(a, ring, oh, 0, g.ow);
    else
      depthwise_inside<V, kMany, kStride, kCells>(a, ring, oh, 0, g.ow);
  }
}

template <class V>
void blocked_depthwise(const BlockedPlane& plane, const float* weight, const float* bias, float low, float high, int64_t row, int64_t rows,
                       RowRing& ring) {
  const DepthwiseArgs<V> a{plane, weight, bias ? V::load(bias) : V::set(0.f), V::set(low), V::set(high)};
  const bool dense = plane.dilation_w == 1;
  if (dense && plane.kernel_w == 3 && plane.stride_w == 1) return depthwise_rows<V, 1, 3>(a, ring, row, rows);
  if (dense && plane.kernel_w == 3 && plane.stride_w == 2) return depthwise_rows<V, 2, 3>(a, ring, row, rows);
  if (dense && plane.kernel_w == 5 && plane.stride_w == 1) return depthwise_rows<V, 1, 5>(a, ring, row, rows);
  if (dense && plane.kernel_w == 5 && plane.stride_w == 2) return depthwise_rows<V, 2, 5>(a, ring, row, rows);
  depthwise_rows<V, 0, 0>(a, ring, row, rows);
}

template <class V, bool kMean>
void pool_plane(const BlockedPlane& g, bool count_pad, int64_t pad_end_h, int64_t pad_end_w) {
  using F = typename V::F;
  constexpr int64_t kWidth = V::kWidth;
  const auto counted = [](int64_t begin, int64_t kernel, int64_t dilation, int64_t end) {
    return CellsInside<V>(begin < 0 ? 0 : begin, kernel, dilation, end).last;  // padding before the image counts, too
  };
  for (int64_t oh = 0; oh < g.oh; ++oh) {
    const int64_t top = oh * g.stride_h - g.pad_h;
    const CellsInside<V> rows_inside(top, g.kernel_h, g.dilation_h, g.h);
    for (int64_t ow = 0; ow < g.ow; ++ow) {
      const int64_t left = ow * g.stride_w - g.pad_w;
      const CellsInside<V> columns(left, g.kernel_w, g.dilation_w, g.w);
      F joined = V::set(kMean ? 0.f : -__builtin_inff());
      for (int64_t kh = rows_inside.first; kh < rows_inside.last; ++kh) {
        const float* x = g.x + ((top + kh * g.dilation_h) * g.w + left) * kWidth;
        for (int64_t kw = columns.first; kw < columns.last; ++kw) {
          const F value = V::load(x + kw * g.dilation_w * kWidth);
          if constexpr (kMean)
            joined = joined + value;
          else
            joined = V::blend(V::is_nan(joined), joined, V::max(joined, value));
        }
      }
      if constexpr (kMean) {
        int64_t cells = (rows_inside.last - rows_inside.first) * (columns.last - columns.first);
        if (count_pad) {
          const int64_t down = counted(top + g.pad_h, g.kernel_h, g.dilation_h, g.h + g.pad_h + pad_end_h);
          const int64_t across = counted(left + g.pad_w, g.kernel_w, g.dilation_w, g.w + g.pad_w + pad_end_w);
          cells = down * across;
        }
        joined = joined / V::set(static_cast<float>(cells > 0 ? cells : 1));
      }
      V::store(g.y + (oh * g.ow + ow) * kWidth, joined);
    }
  }
}

template <class V>
void blocked_pool_max(const BlockedPlane& plane) {
  pool_plane<V, false>(plane, false, 0, 0);
}
template <class V>
void blocked_pool_mean(const BlockedPlane& plane, bool count_pad, int64_t pad_end_h, int64_t pad_end_w) {
  pool_plane<V, true>(plane, count_pad, pad_end_h, pad_end_w);
}

/// Eight sums, so that the additions do not wait for each other and each sum stays short.
template <class V>
void blocked_mean(const float* x, float* y, int64_t pixels) {
  constexpr int64_t kWidth = V::kWidth;
  typename V::F sum[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) sum[i] = V::set(0.f);
  int64_t p = 0;
  for (; p + 8 <= pixels; p += 8) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) sum[i] = sum[i] + V::load(x + (p + i) * kWidth);
  }
  for (; p < pixels; ++p) sum[0] = sum[0] + V::load(x + p * kWidth);
  const auto total = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
  V::store(y, total / V::set(static_cast<float>(pixels)));
}

template <class V>
void blocked_scale(const float* x, const float* factor, float* y, int64_t pixels) {
  const auto f = V::load(factor);
  for (int64_t p = 0; p < pixels; ++p) V::store(y + p * V::kWidth, V::load(x + p * V::kWidth) * f);
}

template <class V>
void blocked_affine(const float* x, const float* factor, const float* shift, float* y, int64_t pixels) {
  const auto f = V::load(factor), s = V::load(shift);
  for (int64_t p = 0; p < pixels; ++p) V::store(y + p * V::kWidth, V::fma(V::load(x + p * V::kWidth), f, s));
}

template <class V>
void blocked_from_plain(const float* x, int64_t x_step, int64_t c, int64_t pixels, float* y) {
  const uint32_t lanes = static_cast<uint32_t>((uint64_t{1} << c) - 1);
  for (int64_t p = 0; p < pixels; ++p) V::store(y + p * V::kWidth, V::load_strided(x + p, x_step, lanes, 0.f));
}

template <class V>
void blocked_to_plain(const float* x, int64_t c, int64_t pixels, float* y, int64_t y_step) {
  constexpr int64_t kWidth = V::kWidth;
  for (int64_t p = 0; p < pixels; p += kWidth) {
    const int n = pixels - p < kWidth ? static_cast<int>(pixels - p) : static_cast<int>(kWidth);
    const uint32_t lanes = static_cast<uint32_t>((uint64_t{1} << n) - 1);
    for (int64_t k = 0; k < c; ++k) V::store_n(y + k * y_step + p, V::load_strided(x + p * kWidth + k, kWidth, lanes, 0.f), n);
  }
}

template <class V>
void blocked_copy(const float* x, int64_t stride, int64_t pixels, float* y) {
  for (int64_t p = 0; p < pixels; ++p) V::store(y + p * V::kWidth, V::load(x + p * stride * V::kWidth));
}

/// Images have three channels; written out, the compiler turns this into permutations.
template <class V>
void blocked_interleave(const float* __restrict x, int64_t x_step, int64_t c, int64_t n, float* __restrict y) {
  if (c == 3) {
    const float *red = x, *green = x + x_step, *blue = x + 2 * x_step;
    for (int64_t i = 0; i < n; ++i) {
      y[3 * i] = red[i];
      y[3 * i + 1] = green[i];
      y[3 * i + 2] = blue[i];
    }
    return;
  }
  for (int64_t channel = 0; channel < c; ++channel) {
    for (int64_t i = 0; i < n; ++i) y[i * c + channel] = x[channel * x_step + i];
  }
}

}  // namespace serin::kernels::cpu
