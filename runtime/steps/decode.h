// decode.h: reads the file of a picture. A client sends the bytes of a file; a model needs pixels.
//
//   SERIN_TRY(const Image image, decode_image(body, {.max_pixels = 16'000'000}));     // JPEG, PNG, WebP, BMP or PNM, told by the first bytes
//
// The bytes are hostile. Sizes are checked before memory is allocated for pixels, and a file that is damaged or truncated is an error, never
// half of a picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/steps/image.h"

namespace serin::steps {

enum class Color : uint8_t { kRgb, kBgr, kGray };

struct DecodeOptions {
  Color color = Color::kRgb;
  /// Turns and mirrors a JPEG as its EXIF data asks for, which browsers and cv2.imread do, and PIL.Image.open does not.
  bool orient = true;
  int64_t max_pixels = 64'000'000;

  friend bool operator==(const DecodeOptions&, const DecodeOptions&) = default;
};

/// Transparency is dropped, not blended, and 16 bits become the upper 8, as cv2.imread and PIL's convert("RGB") do. Grey is PIL's
/// (19595 R + 38470 G + 7471 B) / 65536.
///
/// Errors, which name the format: kCorrupt (damaged, truncated), kUnsupported (another format, an animation), kTooLarge (more pixels).
Result<Image> decode_image(std::span<const std::byte> file, const DecodeOptions& options = {});

/// "JPEG", "PNG" ... by the first bytes, also of a format that is not decoded ("TIFF"); nothing: no picture.
std::optional<std::string_view> image_format(std::span<const std::byte> file);

}  // namespace serin::steps
