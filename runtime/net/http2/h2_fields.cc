#include "runtime/net/http2/h2_fields.h"

#include <charconv>

#include "runtime/net/message/message_writer.h"
#include "runtime/net/message/text.h"

namespace serin::net {
namespace {

constexpr size_t kFieldOverhead = 32;  // what a field counts beside its bytes (RFC 9113, 6.5.2)

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

}  // namespace

// ---- in ----

void FieldReader::begin_head() {
  head_.clear();
  head_.http2 = true;
  trailers_.clear();
  host_.clear();
  refusal_.reset();
  bytes_ = count_ = 0;
  in_trailers_ = false;
}

void FieldReader::begin_trailers() {
  bytes_ = count_ = 0;
  in_trailers_ = true;
}

void FieldReader::refuse(int status, std::string_view reason, std::string message) {
  if (!refusal_) refusal_ = {status, reason, std::move(message)};
}

void FieldReader::add(std::string_view name, std::string_view value) {
  bytes_ += name.size() + value.size() + kFieldOverhead;
  if (bytes_ > limits_.head_bytes)
    return refuse(431, "head_too_large", "the head is larger than " + std::to_string(limits_.head_bytes) + " bytes");
  if (++count_ > limits_.header_count)
    return refuse(431, "too_many_headers", "there are more than " + std::to_string(limits_.header_count) + " headers");
  if (refusal_) return;
  if (!text::all(value, text::kValue)) return refuse(400, "header", "a header has a value that is not printable ASCII");
  if (name.starts_with(':')) return add_pseudo(name, value);
  if (!text::all(name, text::kToken)) return refuse(400, "header", "a header has a name that is not a token");
  if (in_trailers_) return trailers_.add(name, value);
  if (kind_ == HeadParser::Kind::kRequest) {
    if (name == "host") return add_host(value);
    if (name == "cookie") return add_cookie(value);
    if (name == "expect") {
      head_.expects_continue = equal_ignoring_case(value, "100-continue");
      if (!head_.expects_continue) refuse(417, "expect", "the only supported expectation is '100-continue'");
      return;
    }
  }
  if (name == "content-length") return add_length(value);
  if (!is_hop_by_hop(name)) head_.headers.add(name, value);
}

void FieldReader::add_pseudo(std::string_view name, std::string_view value) {
  if (name == ":method") head_.method = value;
  if (name == ":authority") add_host(value);
  if (name == ":path") head_.target = value;
  if (name == ":status") std::from_chars(value.data(), value.data() + value.size(), head_.status);  // three digits, as nghttp2 has seen to
}

void FieldReader::add_host(std::string_view value) {
  if (!is_host(value)) return refuse(400, "host", "the host or :authority is not a host name with an optional port");
  if (!host_.empty() && !equal_ignoring_case(host_, value)) return refuse(400, "host", "the host and the :authority of the request differ");
  host_ = value;
}

/// A cookie may come in pieces (RFC 9113, 8.2.3); everybody else wants it whole.
void FieldReader::add_cookie(std::string_view value) {
  const std::string_view before = head_.headers.get("cookie");
  if (before.empty()) return head_.headers.add("cookie", value);
  head_.headers.set("cookie", std::string(before).append("; ").append(value));
}

void FieldReader::add_length(std::string_view value) {
  const char* end = value.data() + value.size();
  const auto [stop, failure] = std::from_chars(value.data(), end, head_.content_length);
  if (failure != std::errc() || stop != end) return refuse(400, "content_length", "the content-length is not a decimal number");
  head_.framing = Framing::kLength;
}

void FieldReader::finish_head(bool end) {
  if (end)
    head_.framing = Framing::kNone;
  else if (head_.framing != Framing::kLength)
    head_.framing = Framing::kChunked;
  if (kind_ == HeadParser::Kind::kRequest) check_request();
}

void FieldReader::check_request() {
  if (!text::all(head_.method, text::kMethod)) return refuse(400, "method", "the method is not a name in capital letters");
  if (head_.target.size() > limits_.line_bytes)
    return refuse(414, "target_too_long", "the request target is longer than " + std::to_string(limits_.line_bytes) + " bytes");
  const bool asterisk = head_.target == "*" && head_.method == "OPTIONS";
  if (head_.method != "CONNECT" && !asterisk && (!head_.target.starts_with('/') || !text::all(head_.target, text::kTarget)))
    return refuse(400, "target", "the :path does not begin with '/' or has a character that must be escaped");
  if (host_.empty()) return refuse(400, "host", "the :authority is missing");
  head_.headers.add("host", host_);
}

// ---- out ----

void FieldWriter::clear() {
  text_.clear();
  places_.clear();
}

/// Control characters in a value become spaces; a header whose name is no token is left out.
void FieldWriter::add(std::string_view name, std::string_view value) {
  const size_t at = text_.size();
  for (const char c : name) text_.push_back(lower(c));
  value = text::trim(value);
  text_.append(value);
  for (size_t i = at + name.size(); i < text_.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text_[i]);
    if ((byte < 0x20 && byte != '\t') || byte == 0x7F) text_[i] = ' ';
  }
  places_.push_back({at, name.size(), value.size()});
}

void FieldWriter::add_all(const Headers& headers) {
  for (const Header header : headers) {
    const bool ours = equal_ignoring_case(header.name, "host") || equal_ignoring_case(header.name, "expect");
    if (!ours && !header.name.empty() && text::all(header.name, text::kToken) && !is_hop_by_hop(header.name))
      add(header.name, header.value);
  }
}

void FieldWriter::add_number(std::string_view name, uint64_t number) {
  char digits[20];
  add(name, {digits, std::to_chars(digits, digits + sizeof digits, number).ptr});
}

void FieldWriter::request(std::string_view host, const RequestHead& head) {
  clear();
  add(":method", head.method);
  add(":scheme", "http");
  add(":authority", host);
  add(":path", head.target);
  add_all(head.headers);
  if (!head.extra_name.empty()) add(head.extra_name, head.extra_value);
  add("te", "trailers");  // gRPC asks for it, and it is true of whoever asks through here
  if (head.length && *head.length > 0) add_number("content-length", *head.length);
}

void FieldWriter::answer(const AnswerHead& head) {
  clear();
  add_number(":status", static_cast<uint64_t>(head.status));
  add_all(head.headers);
  if (head.length && *head.length > 0 && status_has_body(head.status)) add_number("content-length", *head.length);
}

void FieldWriter::trailers(const Headers& trailers) {
  clear();
  add_all(trailers);
}

const std::vector<nghttp2_nv>& FieldWriter::fields() {
  fields_.clear();
  auto* text = reinterpret_cast<uint8_t*>(text_.data());
  for (const Field& field : places_)
    fields_.push_back({text + field.at, text + field.at + field.name_size, field.name_size, field.value_size, NGHTTP2_NV_FLAG_NONE});
  return fields_;
}

}  // namespace serin::net
