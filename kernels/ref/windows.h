// windows.h: The windows of Conv and Pool over the spatial axes of an [n, c, spatial...] tensor, for any number of axes.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "kernels/attributes.h"
#include "kernels/tensor.h"

namespace serin::kernels::ref {

/// [n, spatial..., c] as [n, c, spatial...] if channels are `last`; requires two axes or more.
inline Shape channels_first(const Shape& shape, bool last) {
  if (!last) return shape;
  Shape first{shape[0], shape.back()};
  for (size_t axis = 1; axis + 1 < shape.rank(); ++axis) first.push_back(shape[axis]);
  return first;
}

struct Windows {
  std::vector<int64_t> kernel, strides, dilations, pads;  ///< pads: begins, then ends

  size_t axes() const { return kernel.size(); }
  int64_t cells() const {
    int64_t cells = 1;
    for (const int64_t k : kernel) cells *= k;
    return cells;
  }

  struct Cell {
    bool inside;  ///< a cell of the input; else padding
    /// In the requested padding (a window may extend further if the output was rounded up).
    bool in_padding;
    int64_t offset = 0;  ///< of the cell within its channel
  };

  /// Cell number `k` of the window at output position `o` (both row-major over the spatial axes).
  Cell cell(const Shape& x, const Shape& y, int64_t o, int64_t k) const {
    Cell cell{true, true, 0};
    int64_t step = 1;
    for (size_t axis = axes(); axis-- > 0;) {
      const int64_t size = x[axis + 2];
      const int64_t at = o % y[axis + 2] * strides[axis] + k % kernel[axis] * dilations[axis] - pads[axis];
      cell.inside &= at >= 0 && at < size;
      cell.in_padding &= at < size + pads[axis + axes()];
      cell.offset += at * step;
      step *= size;
      o /= y[axis + 2];
      k /= kernel[axis];
    }
    return cell;
  }

  /// One stride, dilation and pad pair for each kernel axis, the first two positive, and an input with two axes more.
  bool fits(const Shape& x) const {
    const auto positive = [](int64_t value) { return value > 0; };
    return x.rank() == axes() + 2 && strides.size() == axes() && dilations.size() == axes() && pads.size() == 2 * axes() &&
           std::ranges::all_of(strides, positive) && std::ranges::all_of(dilations, positive);
  }
};

/// As ONNX names the attributes of an operator with windows.
inline Windows windows_of(const Attributes& attributes) {
  return {attributes.integers("kernel_shape"), attributes.integers("strides"), attributes.integers("dilations"),
          attributes.integers("pads")};
}

}  // namespace serin::kernels::ref
