// png.cc: libpng. Palettes are looked up, 16 bits become the upper 8, transparency is dropped.
//
// libpng reports errors by longjmp, so that the functions with setjmp have no objects with destructors.

#include <fmt/format.h>
#include <png.h>

#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/steps/decoders.h"

namespace serin::steps {
namespace {

constexpr png_alloc_size_t kMaxChunk = png_alloc_size_t{8} << 20;  ///< of text and profiles

struct Bytes {
  File left;
  char message[256] = {};
};

void stop_png(png_structp png, png_const_charp message) {
  auto* const source = static_cast<Bytes*>(png_get_error_ptr(png));
  std::snprintf(source->message, sizeof source->message, "%s", message);
  png_longjmp(png, 1);
}

void ignore_warning(png_structp, png_const_charp) {}  // warnings: about colours and text, not about pixels

void read_bytes(png_structp png, png_bytep bytes, size_t count) {
  auto* const source = static_cast<Bytes*>(png_get_io_ptr(png));
  if (count > source->left.size()) png_error(png, "the file ends too early");
  std::memcpy(bytes, source->left.data(), count);
  source->left = source->left.subspan(count);
}

struct PngFile {
  Bytes source;
  png_structp png = nullptr;
  png_infop info = nullptr;

  explicit PngFile(File file) : source{file} {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, stop_png, ignore_warning);
    info = png ? png_create_info_struct(png) : nullptr;
  }
  ~PngFile() { png_destroy_read_struct(&png, &info, nullptr); }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;
};

bool begin_png(PngFile& decoder) {
  png_structp png = decoder.png;
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_read_fn(png, &decoder.source, read_bytes);
  png_set_chunk_malloc_max(png, kMaxChunk);
  png_set_chunk_cache_max(png, 64);
  png_set_user_limits(png, 1U << 30, 1U << 30);  // the pixels are counted next
  png_read_info(png, decoder.info);
  png_set_expand(png);
  png_set_strip_16(png);
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, decoder.info);
  return true;
}

bool read_png_rows(PngFile& decoder, png_bytepp rows) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_read_image(decoder.png, rows);
  png_read_end(decoder.png, nullptr);
  return true;
}

Error damaged_png(const PngFile& decoder) { return {Code::kCorrupt, fmt::format("a damaged PNG: {}", decoder.source.message)}; }

}  // namespace

Result<Decoded> decode_png(File file, int64_t max_pixels) {
  PngFile decoder(file);
  if (!decoder.info) return Error{Code::kInternal, "libpng has no memory"};
  if (!begin_png(decoder)) return damaged_png(decoder);
  const auto width = png_get_image_width(decoder.png, decoder.info), height = png_get_image_height(decoder.png, decoder.info);
  SERIN_CHECK(check_size("PNG", width, height, max_pixels));
  Image image = blank_image(static_cast<int>(width), static_cast<int>(height), png_get_channels(decoder.png, decoder.info));
  if (png_get_rowbytes(decoder.png, decoder.info) != image.pixels.size() / height)
    return Error{Code::kInternal, "a PNG whose rows have another length than their pixels"};
  std::vector<png_bytep> rows(height);
  for (png_uint_32 y = 0; y < height; ++y) rows[y] = image.row(static_cast<int>(y));
  if (!read_png_rows(decoder, rows.data())) return damaged_png(decoder);
  return Decoded{std::move(image)};
}

}  // namespace serin::steps
