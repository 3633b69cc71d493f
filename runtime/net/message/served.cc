#include "runtime/net/message/served.h"

#include <algorithm>
#include <array>

#include "runtime/net/content_coding.h"
#include "runtime/net/message/listener.h"

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

std::optional<Refusal> unserved(const Head& head, const Listener& listener) {
  if (!is_allowed(head.method)) return Refusal{405, "method", "method '" + head.method + "' is not served here"};
  if (listener.options.encoded_bodies) return std::nullopt;
  size_t times = 0;
  std::string_view encoding;
  for (const Header header : head.headers) {
    if (!equal_ignoring_case(header.name, "content-encoding")) continue;
    encoding = header.value;
    times += 1 + static_cast<size_t>(std::ranges::count(encoding, ','));
  }
  if (times > 1) return Refusal{400, "content_encoding", "the body is compressed more than once; once is supported"};
  if (encoding.empty() || equal_ignoring_case(encoding, "identity") || (listener.whole_bodies && parse_coding(encoding)))
    return std::nullopt;
  return Refusal{415, "content_encoding", "content-encoding '" + std::string(encoding) + "' is not supported"};
}

Response answer_to(const Refusal& refusal, const ServerOptions& options) {
  Response response = json_error(refusal.status, refusal.message);
  if (options.on_refusal) options.on_refusal(response);
  if (refusal.status == 405) response.headers.add("allow", kAllowed);
  if (refusal.status == 415) response.headers.add("accept-encoding", kCodings);
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
