// webp.cc: libwebp. Transparency is dropped; an animation is refused.

#include <webp/decode.h>

#include "runtime/steps/decoders.h"

namespace serin::steps {

Result<Decoded> decode_webp(File file, int64_t max_pixels) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(file.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(bytes, file.size(), &features) != VP8_STATUS_OK) return Error{Code::kCorrupt, "a damaged WebP: its header"};
  if (features.has_animation) return Error{Code::kUnsupported, "an animated WebP: single pictures are decoded"};
  SERIN_CHECK(check_size("WebP", features.width, features.height, max_pixels));
  Image image = blank_image(features.width, features.height, 3);
  if (!WebPDecodeRGBInto(bytes, file.size(), image.pixels.data(), image.pixels.size(), features.width * 3))
    return Error{Code::kCorrupt, "a damaged or truncated WebP"};
  return Decoded{std::move(image)};
}

}  // namespace serin::steps
