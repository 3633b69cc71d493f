#include "runtime/net/served.h"

#include <array>

namespace serin::net {
namespace {

constexpr std::string_view kAllowed = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

bool is_allowed(std::string_view method) {
  for (const std::string_view known : {"GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"})
    if (method == known) return true;
  return false;
}

}  // namespace

HeadLimits head_limits(const Limits& limits) { return {limits.request_line_bytes, limits.header_bytes, limits.header_count}; }

std::optional<Refusal> unserved(const Head& head, const ServerOptions& options) {
  if (!is_allowed(head.method)) return Refusal{405, "method", "method '" + head.method + "' is not served here"};
  if (head.upgrade) return Refusal{501, "upgrade", "there is no upgrade to another protocol here"};
  if (options.encoded_bodies) return std::nullopt;
  const std::string_view encoding = head.headers.get("content-encoding");
  if (encoding.empty() || equal_ignoring_case(encoding, "identity")) return std::nullopt;
  return Refusal{415, "content_encoding", "content-encoding '" + std::string(encoding) + "' is not understood; send the body as it is"};
}

Response answer_to(const Refusal& refusal, const ServerOptions& options) {
  Response response = json_error(refusal.status, refusal.message);
  if (options.on_refusal) options.on_refusal(response);
  if (refusal.status == 405) response.headers.add("allow", kAllowed);
  response.close = true;
  return response;
}

Response answer_to_asterisk() {
  Response response;
  response.status = 204;
  response.headers.add("allow", kAllowed);
  return response;
}

}  // namespace serin::net
