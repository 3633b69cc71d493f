#include "runtime/net/inflate.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <memory>

namespace serin::net {
namespace {

constexpr size_t kLargestStep = size_t{1} << 20;

}  // namespace

std::optional<Coding> parse_coding(std::string_view name) {
  if (name == "gzip" || name == "x-gzip") return Coding::kGzip;
  if (name == "deflate") return Coding::kDeflate;
  return std::nullopt;
}

Result<std::string> inflate(Coding coding, std::string_view bytes, size_t limit) {
  z_stream stream{};
  // "deflate" is the zlib format (RFC 9110, 8.4.1.2), gzip the other.
  if (inflateInit2(&stream, coding == Coding::kGzip ? MAX_WBITS + 16 : MAX_WBITS) != Z_OK)
    return Error{Code::kInternal, "zlib has no memory"};
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ends(&stream, inflateEnd);
  const auto corrupt = [&](std::string_view why) {
    return Error{Code::kCorrupt, fmt::format("compressed bytes that are damaged: {}", why)};
  };

  std::string out;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  size_t filled = 0;
  while (true) {
    if (filled == out.size()) out.resize(std::min(limit + 1, filled + std::clamp(filled, bytes.size() + 64, bytes.size() + kLargestStep)));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
    stream.avail_out = static_cast<uInt>(out.size() - filled);
    const int step = ::inflate(&stream, Z_NO_FLUSH);
    filled = out.size() - stream.avail_out;
    if (filled > limit) return Error{Code::kTooLarge, fmt::format("more than {} bytes once they are inflated", limit)};
    if (step == Z_STREAM_END) break;
    if (step == Z_BUF_ERROR || (step == Z_OK && stream.avail_in == 0 && stream.avail_out > 0)) return corrupt("they are cut short");
    if (step != Z_OK) return corrupt(stream.msg ? stream.msg : "unknown");
  }
  if (stream.avail_in > 0) return corrupt("something follows their end");
  out.resize(filled);
  return out;
}

}  // namespace serin::net
