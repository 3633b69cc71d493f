// head_parser.cc: parses a head one line at a time, and checks each line as soon as its CRLF has arrived.
//
// Lines end with CRLF and nothing else: a bare LF is refused where it is found, a bare CR is in no character class below. Folded lines,
// spaces before a colon, a second Content-Length, Content-Length together with Transfer-Encoding, codings other than chunked: all refused
// (RFC 9112, sections 2.2, 5.1, 5.2, 6.1 and 11.2 allow it or ask for it). Lenient on purpose in one thing only: one empty line before a
// request, which old clients send after a POST.

#include "runtime/net/message/head_parser.h"

#include <charconv>
#include <cstring>

#include "runtime/net/message/text.h"

namespace serin::net {
namespace {

/// Calls take(element) for each element of a comma list; false where take says so or an element is empty.
template <class Take>
bool each_element(std::string_view list, const Take& take) {
  for (;;) {
    const size_t comma = list.find(',');
    if (!take(text::trim(list.substr(0, comma)))) return false;
    if (comma == std::string_view::npos) return true;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

bool is_hop_by_hop(std::string_view name) {
  switch (name.size()) {
    case 2: return equal_ignoring_case(name, "te");
    case 7: return equal_ignoring_case(name, "trailer") || equal_ignoring_case(name, "upgrade");
    case 10: return equal_ignoring_case(name, "connection") || equal_ignoring_case(name, "keep-alive");
    case 16: return equal_ignoring_case(name, "proxy-connection");
    case 14: return equal_ignoring_case(name, "content-length") || equal_ignoring_case(name, "http2-settings");
    case 17: return equal_ignoring_case(name, "transfer-encoding");
    default: return false;
  }
}

bool is_host(std::string_view value) {
  if (value.empty() || !text::all(value, text::kHost)) return false;
  const size_t bracket = value.rfind(']');
  if ((value.front() == '[') != (bracket != std::string_view::npos)) return false;
  const size_t colon = value.find(':', bracket == std::string_view::npos ? 0 : bracket);
  const std::string_view name = value.substr(0, colon);
  if (name.empty() || (bracket != std::string_view::npos && bracket + 1 != name.size())) return false;
  if (colon == std::string_view::npos) return true;
  const std::string_view port = value.substr(colon + 1);
  return port.size() <= 5 && port.find_first_not_of("0123456789") == std::string_view::npos;
}

bool parse_field_line(std::string_view line, FieldLine& field) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  field.name = line.substr(0, colon);
  field.value = text::trim(line.substr(colon + 1));
  return text::all(field.name, text::kToken) && text::all(field.value, text::kValue);
}

void Head::clear() {
  method.clear();
  target.clear();
  path.clear();
  query.clear();
  headers.clear();
  status = 0;
  minor_version = 1;
  http2 = false;
  framing = Framing::kNone;
  content_length = 0;
  keep_alive = true;
  expects_continue = false;
}

void HeadParser::reset() {
  head_.clear();
  at_ = scanned_ = header_count_ = host_count_ = 0;
  first_line_done_ = blank_line_seen_ = has_length_ = has_encoding_ = says_close_ = says_keep_alive_ = false;
  host_.clear();
  connection_names_.clear();
}

HeadParser::Step HeadParser::feed(std::string_view bytes) {
  constexpr char kTlsHandshake = 0x16;  // its client would wait for an answer that a head without a line end never gets
  if (kind_ == Kind::kRequest && bytes.starts_with(kTlsHandshake)) {
    refuse(400, "tls", "this is a TLS handshake, but this port speaks plain HTTP");
    return Step::kRefused;
  }
  for (;;) {
    const void* found = std::memchr(bytes.data() + scanned_, '\n', bytes.size() - scanned_);
    const size_t line_end = found ? static_cast<size_t>(static_cast<const char*>(found) - bytes.data()) : bytes.size();

    // Limits come before content, so that the verdict is the same however the bytes were cut.
    if (!first_line_done_ && line_end - at_ > limits_.line_bytes + 1) {
      refuse(414, "request_line_too_long", "the request line is longer than " + std::to_string(limits_.line_bytes) + " bytes");
      return Step::kRefused;
    }
    if (line_end > limits_.head_bytes) {
      refuse(431, "headers_too_large", "the headers are larger than " + std::to_string(limits_.head_bytes) + " bytes");
      return Step::kRefused;
    }
    if (!found) {
      scanned_ = bytes.size();
      return Step::kMore;
    }
    if (line_end == at_ || bytes[line_end - 1] != '\r') {
      refuse(400, "bare_lf", "a line of the head ends without a carriage return");
      return Step::kRefused;
    }
    const std::string_view text = bytes.substr(at_, line_end - 1 - at_);
    at_ = scanned_ = line_end + 1;

    if (text.empty() && first_line_done_) return end_of_head() ? Step::kDone : Step::kRefused;
    if (!line(text)) return Step::kRefused;
  }
}

bool HeadParser::line(std::string_view text) {
  if (first_line_done_) return header_line(text);
  if (text.empty() && kind_ == Kind::kRequest && !blank_line_seen_) return blank_line_seen_ = true;
  first_line_done_ = true;
  return kind_ == Kind::kRequest ? request_line(text) : status_line(text);
}

bool HeadParser::request_line(std::string_view text) {
  const size_t space = text.find(' ');
  const size_t last_space = text.rfind(' ');
  if (space == std::string_view::npos || space == last_space) {
    return refuse(400, "request_line", "the request line is not 'METHOD target HTTP/1.1'");
  }
  const std::string_view method = text.substr(0, space);
  const std::string_view target = text.substr(space + 1, last_space - space - 1);
  if (method.empty() || !text::all(method, text::kMethod)) return refuse(400, "method", "the method is not a word of upper-case letters");
  if (target.empty() || !text::all(target, text::kTarget)) {
    return refuse(400, "target", "the request target is empty or has a character that must be percent-encoded");
  }
  if (!version(text.substr(last_space + 1))) return false;
  head_.method = method;
  head_.target = target;
  return true;
}

bool HeadParser::version(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool well_formed = text.size() == 8 && text.starts_with("HTTP/") && digit(text[5]) && text[6] == '.' && digit(text[7]);
  if (!well_formed) return refuse(400, "version", "the protocol version is not HTTP/1.1 or HTTP/1.0");
  if (text[5] != '1' || text[7] > '1') return refuse(505, "version", "the protocol version is not HTTP/1.1 or HTTP/1.0");
  head_.minor_version = text[7] - '0';
  return true;
}

bool HeadParser::status_line(std::string_view text) {
  const bool shaped = text.size() >= 13 && text[8] == ' ' && text[12] == ' ';
  if (!shaped || !text::all(text.substr(13), text::kValue)) return refuse(400, "status_line", "the status line is not 'HTTP/1.1 200 OK'");
  if (!version(text.substr(0, 8))) return false;
  int status = 0;
  for (const char c : text.substr(9, 3)) {
    if (c < '0' || c > '9') return refuse(400, "status_line", "the status is not a number of three digits");
    status = status * 10 + (c - '0');
  }
  if (status < 100 || status > 599) return refuse(400, "status_line", "the status is not between 100 and 599");
  head_.status = status;
  return true;
}

bool HeadParser::header_line(std::string_view line) {
  if (++header_count_ > limits_.header_count) {
    return refuse(431, "too_many_headers", "there are more than " + std::to_string(limits_.header_count) + " headers");
  }
  if (text::is(line.front(), text::kWhitespace)) return refuse(400, "obs_fold", "a header line begins with white space");
  FieldLine field;
  if (!parse_field_line(line, field)) return refuse(400, "header", "a header line is not 'name: value' in printable ASCII characters");

  const auto named = [&](std::string_view name) { return equal_ignoring_case(field.name, name); };
  switch (field.name.size()) {  // the few that mean something here; the size alone tells most others apart
    case 4:
      if (kind_ == Kind::kRequest && named("host") && !host(field.value)) return false;
      break;
    case 6:
      if (kind_ == Kind::kRequest && named("expect")) return expect(field.value);
      break;
    case 10:
      if (named("connection")) return connection(field.value);
      break;
    case 14:
      if (named("content-length")) return content_length(field.value);
      break;
    case 17:
      if (named("transfer-encoding")) return transfer_encoding(field.value);
      break;
    default: break;
  }
  if (!is_hop_by_hop(field.name)) head_.headers.add_parsed(field.name, field.value);
  return true;
}

bool HeadParser::content_length(std::string_view value) {
  if (has_length_) return refuse(400, "content_length", "there is more than one content-length");
  has_length_ = true;
  const char* end = value.data() + value.size();
  const auto [stop, failure] = std::from_chars(value.data(), end, head_.content_length);  // digits only: unsigned takes no sign
  if (failure != std::errc() || stop != end) return refuse(400, "content_length", "the content-length is not a decimal number");
  head_.framing = Framing::kLength;
  return true;
}

bool HeadParser::transfer_encoding(std::string_view value) {
  if (has_encoding_) return refuse(400, "transfer_encoding", "there is more than one transfer-encoding");
  has_encoding_ = true;
  if (equal_ignoring_case(value, "chunked")) return true;
  const bool one_coding = !value.empty() && text::all(value, text::kToken);
  return refuse(one_coding ? 501 : 400, "transfer_encoding", "the only supported transfer-encoding is 'chunked', once");
}

bool HeadParser::host(std::string_view value) {
  if (++host_count_ > 1) return refuse(400, "host", "there is more than one host header");
  if (!is_host(value)) return refuse(400, "host", "the host header is not a host name with an optional port");
  host_ = value;
  return true;
}

bool HeadParser::connection(std::string_view value) {
  return each_element(value, [this](std::string_view element) {
    if (equal_ignoring_case(element, "close")) return says_close_ = true;
    if (equal_ignoring_case(element, "keep-alive")) return says_keep_alive_ = true;
    if (element.empty()) return true;
    if (!text::all(element, text::kToken)) return refuse(400, "connection", "the connection header is not a list of names");
    connection_names_.append(",").append(element);
    return true;
  });
}

bool HeadParser::expect(std::string_view value) {
  if (!equal_ignoring_case(value, "100-continue")) return refuse(417, "expect", "the only supported expectation is '100-continue'");
  head_.expects_continue = true;
  return true;
}

bool HeadParser::end_of_head() {
  if (has_encoding_) {
    if (has_length_) return refuse(400, "ambiguous_length", "both content-length and transfer-encoding are given");
    if (head_.minor_version == 0) return refuse(400, "transfer_encoding", "HTTP/1.0 has no transfer-encoding");
    head_.framing = Framing::kChunked;
  }
  head_.keep_alive = !says_close_ && (head_.minor_version == 1 || says_keep_alive_);
  if (!connection_names_.empty()) {
    std::string_view names = connection_names_;
    names.remove_prefix(1);
    each_element(names, [this](std::string_view name) {
      head_.headers.remove(name);
      return true;
    });
  }
  if (kind_ == Kind::kResponse) {
    const bool bodyless = head_.status < 200 || head_.status == 204 || head_.status == 304;
    if (bodyless) head_.framing = Framing::kNone;
    if (!bodyless && head_.framing == Framing::kNone) head_.framing = Framing::kUntilClose;
    return true;
  }
  if (head_.minor_version == 0) head_.expects_continue = false;
  if (host_count_ == 0 && head_.minor_version == 1) return refuse(400, "host", "the host header is missing");
  return absolute_target();
}

/// "http://host/path" (as a proxy is asked) becomes "/path", provided that both hosts agree.
bool HeadParser::absolute_target() {
  std::string& target = head_.target;
  if (target.front() == '/') return true;
  if (target == "*" && head_.method == "OPTIONS") return true;
  if (head_.method == "CONNECT") return true;  // refused whole, with its own status, by the server
  constexpr std::string_view kScheme = "http://";
  if (!equal_ignoring_case(std::string_view(target).substr(0, kScheme.size()), kScheme)) {
    return refuse(400, "target", "the request target begins neither with '/' nor with 'http://'");
  }
  const size_t path = target.find_first_of("/?", kScheme.size());
  const std::string_view authority = std::string_view(target).substr(kScheme.size(), path - kScheme.size());
  if (!is_host(authority) || (host_count_ == 1 && !equal_ignoring_case(authority, host_))) {
    return refuse(400, "host", "the host header and the host of the request target differ");
  }
  std::string rest = path == std::string::npos ? "/" : target.substr(path);
  if (rest.front() == '?') rest.insert(0, 1, '/');
  target = std::move(rest);
  return true;
}

bool HeadParser::refuse(int status, std::string_view reason, std::string message) {
  refusal_ = {status, reason, std::move(message)};
  return false;
}

}  // namespace serin::net
