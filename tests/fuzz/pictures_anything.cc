// pictures_anything.cc: an accepted picture has the size that its pixels need, within the limit, and is the same the second time.

#include "tests/fuzz/pictures_anything.h"

#include <cstring>
#include <memory>
#include <span>

#include "runtime/steps/decode.h"
#include "runtime/steps/decoders.h"
#include "tests/fuzz/must.h"

namespace serin::fuzz {

void pictures_anything(std::string_view input) {
  if (input.empty()) return;
  const auto how = static_cast<unsigned char>(input[0]);
  const size_t size = input.size() - 1;
  // A copy of exactly that size, so that a sanitizer sees a read past the end.
  const std::unique_ptr<std::byte[]> bytes(new std::byte[size]);
  if (size > 0) std::memcpy(bytes.get(), input.data() + 1, size);
  const std::span<const std::byte> file(bytes.get(), size);

  const int orientation = steps::exif_orientation(file);
  must(orientation >= 1 && orientation <= 8, "an orientation that there is not");

  const steps::DecodeOptions options{
      .color = how % 3 == 0   ? steps::Color::kRgb
               : how % 3 == 1 ? steps::Color::kBgr
                              : steps::Color::kGray,
      .orient = how % 2 == 0,
      .max_pixels = 1 << 18,
  };
  const auto image = steps::decode_image(file, options);
  if (!image) return;
  must(steps::image_format(file).has_value(), "a picture of no format was decoded");
  must(image->width > 0 && image->height > 0 && int64_t{image->width} * image->height <= options.max_pixels, "more pixels than allowed");
  must(image->channels == (options.color == steps::Color::kGray ? 1 : 3), "a picture in other colours than asked for");
  must(image->pixels.size() == image->offset(0, image->height), "a picture has other pixels than its size says");
  // Memory that is not written shows as pixels that differ.
  const auto again = steps::decode_image(file, options);
  must(again && again->pixels == image->pixels, "a picture has other pixels the second time");
}

}  // namespace serin::fuzz
