// window.h: Conv and Pool over one or two spatial axes, treated as two (a 1-D input has height 1); finds the outputs whose cells are inside
// the input.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/simd/simd.h"
#include "kernels/tensor.h"

namespace serin::kernels::cpu {

/// [n, c, h, w] of an [n, c, w] or [n, c, h, w] tensor.
struct Image {
  int64_t n, c, h, w;
  explicit Image(const Shape& shape) : n(shape[0]), c(shape[1]), h(shape.rank() == 4 ? shape[2] : 1), w(shape.back()) {}
  int64_t plane() const { return h * w; }
  void join_rows() { w *= h, h = 1; }
};

struct Window {
  struct Axis {
    int64_t kernel = 1, stride = 1, dilation = 1, pad = 0, pad_end = 0;

    /// The input index that output `o` reads through cell `k`; may be outside.
    int64_t at(int64_t o, int64_t k) const { return o * stride + k * dilation - pad; }
    /// Outputs [first, last) of `outputs` whose cell `k` is inside an input of `size`.
    struct Range {
      int64_t first, last;
    };
    Range inside(int64_t k, int64_t size, int64_t outputs) const {
      const int64_t shift = pad - k * dilation;  // at(o, k) = o * stride - shift
      const int64_t first = shift > 0 ? (shift + stride - 1) / stride : 0;
      const int64_t last = size + shift > 0 ? (size + shift - 1) / stride + 1 : 0;
      return {std::min(first, outputs), std::clamp(last, std::min(first, outputs), outputs)};
    }
    /// Cells of output o in [0, size), or with the padding in [-pad, size + pad_end).
    int64_t count(int64_t o, int64_t size, bool include_pad) const {
      int64_t cells = 0;
      for (int64_t k = 0; k < kernel; ++k) {
        const int64_t i = at(o, k);
        cells += include_pad ? i < size + pad_end : i >= 0 && i < size;
      }
      return cells;
    }
  };
  Axis h, w;

  /// Requires one or two spatial axes.
  Window(std::span<const int64_t> kernel, std::span<const int64_t> strides, std::span<const int64_t> dilations,
         std::span<const int64_t> pads) {
    const size_t axes = kernel.size();
    const auto axis = [&](size_t i) { return Axis{kernel[i], strides[i], dilations[i], pads[i], pads[i + axes]}; };
    if (axes == 2) h = axis(0);
    w = axis(axes - 1);
  }

  int64_t cells() const { return h.kernel * w.kernel; }
  /// One cell that visits every pixel: rows are irrelevant.
  bool is_point() const {
    const auto point = [](const Axis& axis) { return axis.kernel == 1 && axis.stride == 1 && axis.pad == 0 && axis.pad_end == 0; };
    return point(h) && point(w);
  }

  /// The number of outputs that one vector takes from `pixel` (counted along the plane) on. If outputs adjacent in y are adjacent in x even
  /// across the end of a row, it takes several rows. It then skips only the lanes that cross an edge. Otherwise it takes outputs of one
  /// row.
  int64_t lanes(const Image& x, const Image& y, int64_t pixel, int64_t width) const {
    const bool crosses_rows = h.stride == 1 && w.stride == 1 && x.w == y.w;
    return std::min(width, (crosses_rows ? y.plane() : (pixel / y.w + 1) * y.w) - pixel);
  }
  /// The input of cell (kh, kw) for `lanes` outputs from (oh, ow) on; `inside`: w.inside(kw, x.w, y.w).
  Tap tap(const Image& x, const Image& y, const Axis::Range& inside, int64_t oh, int64_t ow, int64_t lanes, int64_t kh, int64_t kw) const {
    const auto bits = [](int64_t from, int64_t to) { return static_cast<uint32_t>((uint64_t{1} << to) - (uint64_t{1} << from)); };
    Tap tap{h.at(oh, kh) * x.w + w.at(ow, kw), 0, 0};
    for (int64_t lane = 0; lane < lanes; lane += y.w - ow, ow = 0, ++oh) {
      const int64_t begin = std::max(inside.first - ow, int64_t{0}), end = std::min(inside.last - ow, lanes - lane);
      const int64_t ih = h.at(oh, kh);
      if (ih < 0 || ih >= x.h || begin >= end) continue;
      tap.lanes |= bits(lane + begin, lane + end);
      if (w.stride == 2) tap.elements = bits(2 * begin, 2 * end - 1);
    }
    return tap;
  }
  /// Those of all cells [kh, kw].
  void taps(const Image& x, const Image& y, int64_t pixel, int64_t lanes, Tap* taps) const {
    const int64_t oh = pixel / y.w, ow = pixel % y.w;
    for (int64_t kw = 0; kw < w.kernel; ++kw) {
      const auto inside = w.inside(kw, x.w, y.w);
      for (int64_t kh = 0; kh < h.kernel; ++kh) taps[kh * w.kernel + kw] = tap(x, y, inside, oh, ow, lanes, kh, kw);
    }
  }

  static bool fits(const Shape& x, size_t axes, std::span<const int64_t> strides, std::span<const int64_t> dilations,
                   std::span<const int64_t> pads) {
    const auto positive = [](int64_t value) { return value > 0; };
    return (axes == 1 || axes == 2) && x.rank() == axes + 2 && strides.size() == axes && dilations.size() == axes &&
           pads.size() == 2 * axes && std::ranges::all_of(strides, positive) && std::ranges::all_of(dilations, positive);
  }
};

}  // namespace serin::kernels::cpu
