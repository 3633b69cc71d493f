// image_walk.h: converts a strided copy of an image [n, c, h, w] to the same copy of its form [n, h, w, c].
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "kernels/op.h"
#include "kernels/tensor.h"

namespace serin::engine {

struct ImageWalk {
  enum class Along : uint8_t { kNothing, kImages, kChannels, kPixels };

  int64_t offset = 0;
  std::vector<int64_t> strides;
  std::array<Along, Shape::kMaxRank> along{};  ///< of the image, for each axis of the copy
};

/// Describes where the elements that `copy` copies from `image` to a tensor of shape `y` are when channels are last. Returns nothing if an
/// axis of the copy has no single stride there.
std::optional<ImageWalk> walk_channels_last(const Shape& image, const kernels::StridedCopy& copy, const Shape& y);

}  // namespace serin::engine
