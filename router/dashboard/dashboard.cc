// dashboard.cc: serves three files, compressed when the program was built. They contain no secrets, so no token is required. The content
// security policy forbids the page everything of other origins: scripts, fonts, images and frames around it.

#include "router/dashboard/dashboard.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "router/dashboard/embedded_files.h"

namespace serin::router {
namespace {

constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

std::string_view content_type(std::string_view name) {
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  return name.ends_with(".css") ? "text/css; charset=utf-8" : "text/html; charset=utf-8";
}

/// The last eight bytes of a gzip file are checksum and length of what it holds (RFC 1952).
std::string etag(const EmbeddedFile& file) {
  std::string tag = "\"";
  for (const unsigned char byte : file.gzip.last(8)) tag += fmt::format("{:02x}", byte);
  return tag + '"';
}

std::string decompressed(const EmbeddedFile& file) {
  const auto length = file.gzip.last(4);
  std::string text(length[0] | length[1] << 8 | length[2] << 16 | size_t{length[3]} << 24, '\0');
  z_stream stream{};
  inflateInit2(&stream, 16 + MAX_WBITS);  // 16: with gzip's header
  stream.next_in = const_cast<unsigned char*>(file.gzip.data());
  stream.avail_in = static_cast<unsigned>(file.gzip.size());
  stream.next_out = reinterpret_cast<unsigned char*>(text.data());
  stream.avail_out = static_cast<unsigned>(text.size());
  inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  return text;
}

/// "br, gzip;q=0.5" takes it, "gzip;q=0" does not.
bool takes_gzip(std::string_view accepted) {
  for (size_t begin = 0; begin < accepted.size();) {
    const size_t end = std::min(accepted.find(',', begin), accepted.size());
    std::string coding(accepted.substr(begin, end - begin));
    std::erase(coding, ' ');
    begin = end + 1;
    if (!coding.starts_with("gzip")) continue;
    if (coding == "gzip") return true;
    if (coding.starts_with("gzip;q=")) return coding.find_first_not_of("0.", 7) != std::string::npos;
  }
  return false;
}

net::Response answer(const EmbeddedFile& file, const net::Request& request) {
  net::Response response;
  const std::string tag = etag(file);
  response.headers.set("ETag", tag);
  response.headers.set("Cache-Control", "no-cache");  // kept, and asked for each time: a new router has a new page
  response.headers.set("Vary", "Accept-Encoding");
  response.headers.set("Content-Security-Policy", kPolicy);
  response.headers.set("X-Content-Type-Options", "nosniff");
  response.headers.set("Referrer-Policy", "no-referrer");
  if (request.headers.get("if-none-match").find(tag) != std::string_view::npos) {
    response.status = 304;
    return response;
  }
  response.headers.set("Content-Type", content_type(file.name));
  if (!takes_gzip(request.headers.get("accept-encoding"))) {
    response.body = decompressed(file);
    return response;
  }
  response.headers.set("Content-Encoding", "gzip");
  response.body.assign(reinterpret_cast<const char*>(file.gzip.data()), file.gzip.size());
  return response;
}

}  // namespace

std::optional<net::Response> dashboard_answer(const net::Request& request) {
  if (request.method != "GET" && request.method != "HEAD") return std::nullopt;
  const std::string_view name = request.path == "/" ? "index.html" : std::string_view(request.path).substr(1);
  for (const EmbeddedFile& file : embedded_files())
    if (file.name == name) return answer(file, request);
  return std::nullopt;
}

}  // namespace serin::router
