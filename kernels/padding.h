// padding.h: One axis of a Pad, for every backend: negative pads crop first, then the rest is padded.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/float16.h"
#include "kernels/op.h"

namespace serin::kernels {

struct PaddedAxis {
  int64_t begin = 0, crop = 0, size = 0;

  PaddedAxis() = default;
  PaddedAxis(int64_t begin_pad, int64_t end_pad, int64_t input)
      : begin(std::max<int64_t>(begin_pad, 0)),
        crop(std::max<int64_t>(-begin_pad, 0)),
        size(input - crop - std::max<int64_t>(-end_pad, 0)) {}

  /// The input index for index `i` of the output, or -1 for the pad value.
  SERIN_HD int64_t source(int64_t i, Pad::Mode mode) const {
    i -= begin;
    if (i >= 0 && i < size) return i + crop;
    if (mode == Pad::Mode::kConstant) return -1;
    if (mode == Pad::Mode::kEdge || size == 1) return (i < 0 ? 0 : size - 1) + crop;
    const int64_t period = mode == Pad::Mode::kWrap ? size : 2 * (size - 1);  // reflect: 2 1 0 1 2 1 0 ...
    const int64_t folded = (i % period + period) % period;
    return (folded < size ? folded : period - folded) + crop;
  }
};

}  // namespace serin::kernels
