// image.h: a picture in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace serin::steps {

/// Rows from top to bottom, pixels from left to right, channels next to each other.
struct Image {
  int width = 0, height = 0, channels = 0;
  std::vector<uint8_t> pixels;  ///< height x width x channels

  uint8_t* row(int y) { return pixels.data() + offset(0, y); }
  const uint8_t* row(int y) const { return pixels.data() + offset(0, y); }
  const uint8_t* at(int x, int y) const { return pixels.data() + offset(x, y); }

  size_t offset(int x, int y) const {
    return (static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)) * static_cast<size_t>(channels);
  }
};

/// Black, of that size. Throws std::bad_alloc.
inline Image blank_image(int width, int height, int channels) {
  Image image{.width = width, .height = height, .channels = channels, .pixels = {}};
  image.pixels.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * static_cast<size_t>(channels));
  return image;
}

}  // namespace serin::steps
