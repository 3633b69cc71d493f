// decode.cc: tells the format, decodes, turns, and gives the colours that are wanted.

#include "runtime/steps/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/steps/decoders.h"

namespace serin::steps {
namespace {

using DecodeFn = Result<Decoded> (*)(File, int64_t);

struct Format {
  std::string_view name;
  size_t offset;
  std::string_view magic;
  DecodeFn decode;  ///< null: known, and not decoded
};

using namespace std::string_view_literals;

constexpr Format kFormats[] = {
    {"JPEG", 0, "\xff\xd8\xff"sv, decode_jpeg},
    {"PNG", 0, "\x89PNG\r\n\x1a\n"sv, decode_png},
    {"WebP", 8, "WEBP"sv, decode_webp},
    {"BMP", 0, "BM"sv, decode_bmp},
    {"PNM", 0, "P5"sv, decode_pnm},
    {"PNM", 0, "P6"sv, decode_pnm},
    {"GIF", 0, "GIF8"sv, nullptr},
    {"TIFF", 0, "II*\0"sv, nullptr},
    {"TIFF", 0, "MM\0*"sv, nullptr},
    {"JPEG 2000", 0, "\0\0\0\x0cjP  "sv, nullptr},
    {"HEIF or AVIF", 4, "ftyp"sv, nullptr},
    {"PDF", 0, "%PDF"sv, nullptr},
};

const Format* find_format(File file) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  const auto fits = [bytes](const Format& format) {
    return bytes.size() >= format.offset && bytes.substr(format.offset).starts_with(format.magic);
  };
  const auto* const found = std::ranges::find_if(kFormats, fits);
  return found == std::end(kFormats) ? nullptr : found;
}

Image to_grey(const Image& image) {
  Image grey = blank_image(image.width, image.height, 1);
  for (size_t i = 0; i < grey.pixels.size(); ++i) {
    const uint8_t* const rgb = &image.pixels[3 * i];
    grey.pixels[i] = static_cast<uint8_t>((19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 0x8000U) >> 16);
  }
  return grey;
}

Image to_colour(const Image& grey) {
  Image image = blank_image(grey.width, grey.height, 3);
  for (size_t i = 0; i < grey.pixels.size(); ++i) std::memset(&image.pixels[3 * i], grey.pixels[i], 3);
  return image;
}

Image in_colour(Image image, Color color) {
  if (color == Color::kGray) return image.channels == 1 ? image : to_grey(image);
  if (image.channels == 1) return to_colour(image);
  if (color == Color::kBgr)
    for (size_t i = 0; i < image.pixels.size(); i += 3) std::swap(image.pixels[i], image.pixels[i + 2]);
  return image;
}

}  // namespace

std::optional<std::string_view> image_format(std::span<const std::byte> file) {
  const Format* const format = find_format(file);
  return format ? std::optional(format->name) : std::nullopt;
}

Result<Image> decode_image(std::span<const std::byte> file, const DecodeOptions& options) {
  const Format* const format = find_format(file);
  if (!format) return Error{Code::kUnsupported, "not a picture: JPEG, PNG, WebP, BMP and PNM are decoded"};
  if (!format->decode) return Error{Code::kUnsupported, fmt::format("a {} is not decoded; JPEG, PNG, WebP, BMP and PNM are", format->name)};
  SERIN_TRY(Decoded decoded, format->decode(file, options.max_pixels));
  Image upright = options.orient ? turn(std::move(decoded.image), decoded.orientation) : std::move(decoded.image);
  return in_colour(std::move(upright), options.color);
}

}  // namespace serin::steps
