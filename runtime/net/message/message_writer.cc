// message_writer.cc: writes messages from the typed message only, never from raw bytes that came in. It always writes exactly one statement
// of the body's length.

#include "runtime/net/message/message_writer.h"

#include <charconv>

#include "runtime/net/message/head_parser.h"
#include "runtime/net/message/text.h"

namespace serin::net {
namespace {

void append_number(uint64_t number, std::string& out) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, end);
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

std::string host_field(const Origin& origin) {
  std::string host = authority(origin);
  if (origin.port == (origin.secure ? 443 : 80)) host.erase(host.rfind(':'));
  return host;
}

void write_answer_head(const AnswerHead& head, Persistence persistence, bool chunked, std::string& out) {
  out.append("HTTP/1.1 ");
  append_number(static_cast<uint64_t>(head.status), out);
  out.append(" ").append(reason_phrase(head.status)).append("\r\n");
  head.headers.print(out, [](std::string_view name) { return !is_hop_by_hop(name); });
  if (head.length && status_has_body(head.status)) append_content_length(*head.length, out);
  if (chunked) out.append("transfer-encoding: chunked\r\n");
  if (persistence == Persistence::kClose) out.append("connection: close\r\n");
  if (persistence == Persistence::kKeepAlive) out.append("connection: keep-alive\r\n");
  out.append("\r\n");
}

void append_chunk(std::string_view bytes, bool last, std::string& out) {
  if (!bytes.empty()) {
    char digits[16];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, bytes.size(), 16).ptr).append("\r\n").append(bytes).append("\r\n");
  }
  if (last) out.append("0\r\n\r\n");
}

bool valid_request_line(std::string_view method, std::string_view target) {
  return !method.empty() && text::all(method, text::kMethod) && !target.empty() && text::all(target, text::kTarget);
}

void write_request_head(std::string_view host, const RequestHead& head, std::string& out) {
  out.append(head.method).append(" ").append(head.target).append(" HTTP/1.1\r\nhost: ").append(host).append("\r\n");
  head.headers.print(out, [](std::string_view name) {
    return !is_hop_by_hop(name) && !equal_ignoring_case(name, "host") && !equal_ignoring_case(name, "expect");
  });
  if (!head.extra_name.empty()) out.append(head.extra_name).append(": ").append(head.extra_value).append("\r\n");
  if (!head.length)
    out.append("transfer-encoding: chunked\r\n");
  else if (*head.length > 0 || (head.method != "GET" && head.method != "HEAD"))
    append_content_length(*head.length, out);
  out.append("\r\n");
}

}  // namespace serin::net
