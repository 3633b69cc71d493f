// message_writer.cc: writes from the typed message only, never raw bytes that came in, and always exactly one statement of the body's length.

#include "runtime/net/message_writer.h"

#include <charconv>

#include "runtime/net/head_parser.h"
#include "runtime/net/text.h"

namespace serin::net {
namespace {

void append_number(uint64_t number, std::string& out) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, end);
}

/// Line ends and other control characters in a value become spaces; a header whose name is no token is left out.
void append_header(std::string_view name, std::string_view value, std::string& out) {
  if (name.empty() || !text::all(name, text::kToken)) return;
  out.append(name).append(": ");
  const size_t begin = out.size();
  out.append(value);
  for (size_t i = begin; i < out.size(); ++i) {
    const auto byte = static_cast<unsigned char>(out[i]);
    if ((byte < 0x20 && byte != '\t') || byte == 0x7F) out[i] = ' ';
  }
  out.append("\r\n");
}

void append_content_length(size_t length, std::string& out) {
  out.append("content-length: ");
  append_number(length, out);
  out.append("\r\n");
}

}  // namespace

bool status_has_body(int status) { return status >= 200 && status != 204 && status != 304; }

std::string authority(const Origin& origin) {
  const bool ipv6 = origin.host.find(':') != std::string::npos;
  return (ipv6 ? "[" + origin.host + "]" : origin.host) + ":" + std::to_string(origin.port);
}

void write_response_head(const Response& response, Persistence persistence, std::string& out) {
  out.append("HTTP/1.1 ");
  append_number(static_cast<uint64_t>(response.status), out);
  out.append(" ").append(reason_phrase(response.status)).append("\r\n");
  for (const Header& header : response.headers.all())
    if (!is_hop_by_hop(header.name)) append_header(header.name, header.value, out);
  if (status_has_body(response.status)) append_content_length(response.body.size(), out);
  if (persistence == Persistence::kClose) out.append("connection: close\r\n");
  if (persistence == Persistence::kKeepAlive) out.append("connection: keep-alive\r\n");
  out.append("\r\n");
}

bool valid_request_line(const Outgoing& request) {
  return !request.method.empty() && text::all(request.method, text::kMethod) && !request.target.empty() &&
         text::all(request.target, text::kTarget);
}

void write_request_head(const Origin& origin, const Outgoing& request, std::string& out) {
  out.append(request.method).append(" ").append(request.target).append(" HTTP/1.1\r\n");
  append_header("host", authority(origin), out);
  for (const Header& header : request.headers.all()) {
    if (!is_hop_by_hop(header.name) && !equal_ignoring_case(header.name, "host") && !equal_ignoring_case(header.name, "expect")) {
      append_header(header.name, header.value, out);
    }
  }
  const bool may_have_body = request.method != "GET" && request.method != "HEAD";
  if (request.body) {
    append_content_length(request.body->size(), out);
  } else if (may_have_body) {
    append_content_length(0, out);
  }
  out.append("\r\n");
}

}  // namespace serin::net
