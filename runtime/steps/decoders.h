// decoders.h: one decoder for each format. They return RGB, or one channel if the file is grey.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/steps/image.h"

namespace serin::steps {

using File = std::span<const std::byte>;

/// How a picture must be turned so that it stands upright: values 1 to 8 of EXIF's tag 0x0112.
struct Decoded {
  Image image;
  int orientation = 1;
};

Result<Decoded> decode_jpeg(File file, int64_t max_pixels);
Result<Decoded> decode_png(File file, int64_t max_pixels);
Result<Decoded> decode_webp(File file, int64_t max_pixels);
Result<Decoded> decode_bmp(File file, int64_t max_pixels);
Result<Decoded> decode_pnm(File file, int64_t max_pixels);

/// kCorrupt: no pixels at all; kTooLarge: more than `max_pixels`.
Status check_size(std::string_view format, int64_t width, int64_t height, int64_t max_pixels);

/// The orientation in a block of EXIF data ("II*\0" or "MM\0*" first); 1 if it has none or is damaged.
int exif_orientation(File exif);
/// Upright.
Image turn(Image image, int orientation);

}  // namespace serin::steps
