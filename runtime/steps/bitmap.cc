// bitmap.cc: pictures without compression: BMP of 24 and 32 bits, or of 8 with a palette, and PNM (P5, P6) of 8 bits.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/steps/decoders.h"

namespace serin::steps {
namespace {

uint32_t u32(File file, size_t at) {
  uint32_t value;
  std::memcpy(&value, file.data() + at, 4);  // little-endian, like every machine that Serin runs on
  return value;
}
uint16_t u16(File file, size_t at) { return static_cast<uint16_t>(u32(file, at) & 0xffff); }

Error corrupt(std::string problem) { return {Code::kCorrupt, std::move(problem)}; }

/// The next decimal number of a PNM's header, after spaces and comments; -1: there is none.
int64_t next_number(std::string_view text, size_t& at) {
  while (at < text.size() && (text[at] == '#' || std::string_view(" \t\r\n").find(text[at]) != std::string_view::npos)) {
    if (text[at] == '#') at = std::min(text.find('\n', at), text.size() - 1);
    ++at;
  }
  int64_t number = -1;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && number < 1'000'000'000; ++at)
    number = std::max<int64_t>(number, 0) * 10 + (text[at] - '0');
  return number;
}

}  // namespace

Result<Decoded> decode_bmp(File file, int64_t max_pixels) {
  constexpr size_t kHeaders = 54;
  if (file.size() < kHeaders) return corrupt("a truncated BMP");
  const size_t data = u32(file, 10), header = u32(file, 14);
  const auto width = static_cast<int32_t>(u32(file, 18)), height = static_cast<int32_t>(u32(file, 22));
  const unsigned bits = u16(file, 28), compression = u32(file, 30);
  if (header < 40) return Error{Code::kUnsupported, "a BMP of OS/2"};
  if (compression != 0 || (bits != 8 && bits != 24 && bits != 32))
    return Error{Code::kUnsupported, fmt::format("a BMP of {} bits, compression {}", bits, compression)};
  const bool top_down = height < 0;
  const int64_t rows = top_down ? -int64_t{height} : int64_t{height};
  SERIN_CHECK(check_size("BMP", width, rows, max_pixels));
  const size_t stride = (static_cast<size_t>(width) * bits + 31) / 32 * 4;
  if (data < kHeaders || data > file.size() || file.size() - data < stride * static_cast<size_t>(rows)) return corrupt("a truncated BMP");
  size_t colours = 0;
  if (bits == 8) {
    colours = u32(file, 46) == 0 ? 256 : u32(file, 46);
    if (colours > 256 || header > data - 14 || data - 14 - header < colours * 4) return corrupt("a BMP with a damaged palette");
  }
  Image image = blank_image(width, static_cast<int>(rows), 3);
  for (int y = 0; y < image.height; ++y) {
    const File line = file.subspan(data + stride * static_cast<size_t>(top_down ? y : image.height - 1 - y), stride);
    uint8_t* to = image.row(y);
    for (size_t x = 0; x < static_cast<size_t>(width); ++x, to += 3) {
      File bgr = line.subspan(bits == 8 ? 0 : x * bits / 8);
      if (bits == 8) {
        const auto index = static_cast<size_t>(line[x]);
        if (index >= colours) return corrupt(fmt::format("a BMP with colour {} of {}", index, colours));
        bgr = file.subspan(14 + header + index * 4);
      }
      for (size_t c = 0; c < 3; ++c) to[c] = static_cast<uint8_t>(bgr[2 - c]);
    }
  }
  return Decoded{std::move(image)};
}

Result<Decoded> decode_pnm(File file, int64_t max_pixels) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  size_t at = 2;
  const int64_t width = next_number(text, at), height = next_number(text, at), most = next_number(text, at);
  if (width < 0 || height < 0 || most < 0) return corrupt("a damaged PNM: its header");
  if (most != 255) return Error{Code::kUnsupported, fmt::format("a PNM of values up to {}; 255 is decoded", most)};
  SERIN_CHECK(check_size("PNM", width, height, max_pixels));
  ++at;  // one space
  Image image = blank_image(static_cast<int>(width), static_cast<int>(height), text[1] == '5' ? 1 : 3);
  if (at > text.size() || text.size() - at < image.pixels.size()) return corrupt("a truncated PNM");
  std::memcpy(image.pixels.data(), text.data() + at, image.pixels.size());
  return Decoded{std::move(image)};
}

}  // namespace serin::steps
