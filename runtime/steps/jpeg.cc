// jpeg.cc: libjpeg-turbo with its default decoder (slow integer DCT, smooth chroma), which cv2 and PIL use as well.
//
// libjpeg reports errors by longjmp, so that the function with setjmp has no objects with destructors.

#include <csetjmp>
#include <cstdio>  // jpeglib.h needs FILE

#include <fmt/format.h>
#include <jpeglib.h>

#include <cstring>
#include <memory>
#include <string>

#include "runtime/steps/decoders.h"

namespace serin::steps {
namespace {

/// Files with more scans are made to keep a decoder busy: each scan visits all pixels again.
constexpr int kMaxScans = 100;
constexpr long kMaxMemory = 512L << 20;  ///< of a progressive picture's coefficients

struct Errors {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
};

void stop_jpeg(j_common_ptr info) {
  auto* const errors = reinterpret_cast<Errors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->back, 1);
}

/// Warnings are damage that libjpeg would paint over.
void stop_at_damage(j_common_ptr info, int level) {
  if (level < 0) stop_jpeg(info);
}

void count_scans(j_common_ptr info) {
  auto* const decoder = reinterpret_cast<j_decompress_ptr>(info);
  auto* const errors = reinterpret_cast<Errors*>(info->err);
  if (decoder->input_scan_number <= kMaxScans) return;
  std::snprintf(errors->message, sizeof errors->message, "more than %d scans", kMaxScans);
  std::longjmp(errors->back, 1);
}

struct JpegFile {
  jpeg_decompress_struct info;
  Errors errors;
  jpeg_progress_mgr progress;

  JpegFile() : info(), errors(), progress() {
    info.err = jpeg_std_error(&errors.manager);
    errors.manager.error_exit = stop_jpeg;
    errors.manager.emit_message = stop_at_damage;
    progress.progress_monitor = count_scans;
  }
  ~JpegFile() { jpeg_destroy_decompress(&info); }
  JpegFile(const JpegFile&) = delete;
  JpegFile& operator=(const JpegFile&) = delete;
};

bool begin_jpeg(JpegFile& decoder, File file) {
  if (setjmp(decoder.errors.back) != 0) return false;
  jpeg_create_decompress(&decoder.info);
  decoder.info.progress = &decoder.progress;
  decoder.info.mem->max_memory_to_use = kMaxMemory;
  jpeg_save_markers(&decoder.info, JPEG_APP0 + 1, 0xffff);
  jpeg_mem_src(&decoder.info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&decoder.info, TRUE);
  switch (decoder.info.jpeg_color_space) {
    case JCS_GRAYSCALE: decoder.info.out_color_space = JCS_GRAYSCALE; break;
    case JCS_CMYK:
    case JCS_YCCK: decoder.info.out_color_space = JCS_CMYK; break;
    default: decoder.info.out_color_space = JCS_RGB;
  }
  jpeg_calc_output_dimensions(&decoder.info);
  return true;
}

bool read_jpeg_rows(JpegFile& decoder, uint8_t* pixels) {
  if (setjmp(decoder.errors.back) != 0) return false;
  jpeg_start_decompress(&decoder.info);
  const size_t stride = static_cast<size_t>(decoder.info.output_width) * static_cast<size_t>(decoder.info.output_components);
  while (decoder.info.output_scanline < decoder.info.output_height) {
    JSAMPROW row = pixels + decoder.info.output_scanline * stride;
    jpeg_read_scanlines(&decoder.info, &row, 1);
  }
  jpeg_finish_decompress(&decoder.info);
  return true;
}

Error damaged_jpeg(const JpegFile& decoder) { return {Code::kCorrupt, fmt::format("a damaged JPEG: {}", decoder.errors.message)}; }

/// Files of Adobe hold inverted inks.
Image from_cmyk(const Image& inks, bool inverted) {
  Image image = blank_image(inks.width, inks.height, 3);
  for (size_t i = 0; i < image.pixels.size() / 3; ++i) {
    const auto paper = [&](size_t ink) { return inverted ? inks.pixels[4 * i + ink] : 255U - inks.pixels[4 * i + ink]; };
    const unsigned black = paper(3);
    for (size_t c = 0; c < 3; ++c) image.pixels[3 * i + c] = static_cast<uint8_t>((paper(c) * black + 127) / 255);
  }
  return image;
}

int orientation_of(const JpegFile& decoder) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  for (const auto* marker = decoder.info.marker_list; marker; marker = marker->next) {
    const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
    if (marker->marker == JPEG_APP0 + 1 && data.starts_with(kExif))
      return exif_orientation(std::as_bytes(std::span(data.substr(kExif.size()))));
  }
  return 1;
}

}  // namespace

Result<Decoded> decode_jpeg(File file, int64_t max_pixels) {
  const auto decoder = std::make_unique<JpegFile>();
  if (!begin_jpeg(*decoder, file)) return damaged_jpeg(*decoder);
  SERIN_CHECK(check_size("JPEG", decoder->info.output_width, decoder->info.output_height, max_pixels));
  const auto channels = decoder->info.out_color_space == JCS_GRAYSCALE ? 1 : decoder->info.out_color_space == JCS_CMYK ? 4 : 3;
  Image image = blank_image(static_cast<int>(decoder->info.output_width), static_cast<int>(decoder->info.output_height), channels);
  const int orientation = orientation_of(*decoder);  // libjpeg forgets the markers at the end
  if (!read_jpeg_rows(*decoder, image.pixels.data())) return damaged_jpeg(*decoder);
  if (channels == 4) image = from_cmyk(image, decoder->info.saw_Adobe_marker != 0);
  return Decoded{std::move(image), orientation};
}

}  // namespace serin::steps
