// windows.h: Windows that slide over the pixels of images: their positions, axis by axis.
//
//   int64_t pixel[kWindowAxes];
//   const int64_t plane = w.locate(i, pixel);                    // y's pixel i, and the plane of pixels that contains it
//   const int64_t h = w.begins(1, pixel[1]) + k * w.dilation[1]; // the pixel of x that the window's cell k reads, along axis 1
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/space.h"

namespace serin::kernels::cuda {

constexpr int kWindowAxes = 3;

/// Fewer axes are padded with leading ones of size 1.
struct Windows {
  int64_t x[kWindowAxes] = {1, 1, 1}, kernel[kWindowAxes] = {1, 1, 1}, stride[kWindowAxes] = {1, 1, 1}, dilation[kWindowAxes] = {1, 1, 1},
          begin[kWindowAxes] = {0, 0, 0}, end[kWindowAxes] = {0, 0, 0};
  Division y[kWindowAxes];

  Windows() = default;
  /// `first`: the first spatial axis of both shapes. The lists have one entry for each spatial axis, pads two.
  Windows(const Shape& x_shape, const Shape& y_shape, size_t first, const std::vector<int64_t>& kernels,
          const std::vector<int64_t>& strides, const std::vector<int64_t>& dilations, const std::vector<int64_t>& pads) {
    const size_t axes = kernels.size();
    for (Division& size : y) size = Division(1, y_shape.elements());
    for (size_t axis = 0; axis < axes; ++axis) {
      const size_t at = kWindowAxes - axes + axis;
      x[at] = x_shape[axis + first], y[at] = Division(y_shape[axis + first], y_shape.elements());
      kernel[at] = kernels[axis], stride[at] = strides[axis], dilation[at] = dilations[axis];
      begin[at] = pads[axis], end[at] = pads[axis + axes];
    }
  }

  SERIN_HD int64_t x_pixels() const { return x[0] * x[1] * x[2]; }
  SERIN_HD int64_t cells() const { return kernel[0] * kernel[1] * kernel[2]; }

  /// The pixel of y with number i, pixels innermost; returns the rest of i.
  SERIN_HD int64_t locate(int64_t i, int64_t (&pixel)[kWindowAxes]) const {
    for (int axis = kWindowAxes - 1; axis >= 0; --axis) {
      const int64_t next = y[axis].quotient(i);
      pixel[axis] = i - next * y[axis].d;
      i = next;
    }
    return i;
  }
  /// The pixel of x at which the window of y's pixel begins, possibly in the padding.
  SERIN_HD int64_t begins(int axis, int64_t pixel) const { return pixel * stride[axis] - begin[axis]; }
};

}  // namespace serin::kernels::cuda
