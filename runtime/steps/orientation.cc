// orientation.cc: EXIF says how a camera was held, as a number from 1 to 8; pixels are turned and mirrored to stand upright.

#include <cstring>
#include <utility>

#include "runtime/steps/decoders.h"

namespace serin::steps {
namespace {

/// Numbers of a TIFF structure, in its byte order. Reading outside gives 0.
struct Tiff {
  File bytes;
  bool big_endian;

  uint32_t number(size_t at, size_t size) const {
    if (at > bytes.size() || size > bytes.size() - at) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8 | static_cast<uint32_t>(bytes[at + (big_endian ? i : size - 1 - i)]);
    return value;
  }
};

}  // namespace

int exif_orientation(File exif) {
  constexpr uint32_t kOrientation = 0x0112, kShort = 3;
  const std::string_view text(reinterpret_cast<const char*>(exif.data()), exif.size());
  const bool big_endian = text.starts_with(std::string_view("MM\0*", 4));
  if (!big_endian && !text.starts_with(std::string_view("II*\0", 4))) return 1;
  const Tiff tiff{exif, big_endian};
  const size_t directory = tiff.number(4, 4), entries = tiff.number(directory, 2);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + 12 * i;
    if (tiff.number(entry, 2) != kOrientation) continue;
    const uint32_t value = tiff.number(entry + 8, 2);
    return tiff.number(entry + 2, 2) == kShort && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Image turn(Image image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  // 5 to 8 swap the axes. Then the columns, the rows, or both run backwards in the file.
  const bool swap = orientation >= 5;
  const bool mirror_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool mirror_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const auto channels = static_cast<size_t>(image.channels);
  Image upright = blank_image(swap ? image.height : image.width, swap ? image.width : image.height, image.channels);
  for (int y = 0; y < upright.height; ++y) {
    uint8_t* to = upright.row(y);
    for (int x = 0; x < upright.width; ++x, to += channels) {
      const int across = swap ? y : x, down = swap ? x : y;  // in the file, before it is mirrored
      const int column = mirror_x ? image.width - 1 - across : across, row = mirror_y ? image.height - 1 - down : down;
      std::memcpy(to, image.row(row) + static_cast<size_t>(column) * channels, channels);
    }
  }
  return upright;
}

}  // namespace serin::steps
