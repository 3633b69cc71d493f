// levels.h: pixels as values of a tensor. A pixel has 256 levels, so each value is computed once.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/steps/image.h"

namespace serin::steps {

/// The value of each level, for each channel.
template <class T>
using Levels = std::vector<std::array<T, 256>>;

/// `value(level, channel)`: of a level from 0 to 255.
template <class T, class Value>
Levels<T> make_levels(size_t channels, const Value& value) {
  Levels<T> levels(channels);
  for (size_t channel = 0; channel < channels; ++channel)
    for (size_t level = 0; level < 256; ++level) levels[channel][level] = value(static_cast<float>(level), channel);
  return levels;
}

/// Writes a picture into the upper left corner of a tensor of that size, which is zero elsewhere. The tensor is [channels, height, width], or
/// [height, width, channels].
template <class T>
void write_levels(const Image& image, int width, int height, const Levels<T>& levels, bool channels_first, T* out) {
  const size_t channels = levels.size(), plane = static_cast<size_t>(width) * static_cast<size_t>(height);
  if (width != image.width || height != image.height) std::fill_n(out, plane * channels, T{});
  for (size_t channel = 0; channel < channels; ++channel) {
    const std::array<T, 256>& level = levels[channel];
    const size_t stride = channels_first ? 1 : channels;
    T* const first = channels_first ? out + channel * plane : out + channel;
    for (int y = 0; y < image.height; ++y) {
      const uint8_t* const in = image.row(y) + channel;
      T* const to = first + static_cast<size_t>(y) * static_cast<size_t>(width) * stride;
      for (size_t x = 0; x < static_cast<size_t>(image.width); ++x) to[x * stride] = level[in[x * channels]];
    }
  }
}

}  // namespace serin::steps
