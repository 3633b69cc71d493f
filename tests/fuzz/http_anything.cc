// http_anything.cc: reads the bytes as a connection does, once whole and once in pieces, and compares what was understood.

#include "tests/fuzz/http_anything.h"

#include <iterator>
#include <random>
#include <string>

#include "router/proxy/rewrite.h"
#include "runtime/net/content_coding.h"
#include "runtime/net/message/body_reader.h"
#include "runtime/net/message/head_parser.h"
#include "runtime/net/message/message_writer.h"
#include "runtime/net/target.h"
#include "tests/fuzz/h2_anything.h"
#include "tests/fuzz/must.h"

namespace serin::fuzz {
namespace {

using net::BodyReader;
using net::Framing;
using net::HeadParser;

constexpr net::HeadLimits kHeadLimits{.line_bytes = 1000, .head_bytes = 4000, .header_count = 20};
constexpr net::HeadLimits kWider{.line_bytes = 32000, .head_bytes = 128000, .header_count = 300};  // of who gets what is written again
constexpr net::BodyLimits kBodyLimits{.bytes = 2000, .chunks = 50};
constexpr size_t kUnpackedBytes = 100'000;

net::Head read_again(HeadParser::Kind kind, const std::string& text) {
  HeadParser parser(kind, kWider);
  must(parser.feed(text) == HeadParser::Step::kDone, "what is written is accepted");
  must(parser.size() == text.size(), "and is one head");
  return parser.head();
}

void pass_on_answer(net::Head head) {
  if (head.status < 200) return;
  router::rewrite_answer(head, "7");
  const bool has_body = net::status_has_body(head.status);
  const auto length = head.framing == Framing::kLength ? std::optional(head.content_length) : std::nullopt;
  std::string text;
  net::write_answer_head({.status = head.status, .headers = head.headers, .length = length}, net::Persistence::kClose, has_body && !length,
                         text);
  const net::Head again = read_again(HeadParser::Kind::kResponse, text);
  must(again.status == head.status && again.headers.get("x-serin-version") == "7", "the answer is the same");
  if (has_body) must(length ? again.content_length == *length : again.framing == Framing::kChunked, "its body is as long");
}

std::string describe(const net::Head& head) {
  std::string text = head.method + ' ' + head.target + ' ' + std::to_string(head.status) + ' ' + std::to_string(head.minor_version) + ' ' +
                     std::to_string(static_cast<int>(head.framing)) + ' ' + std::to_string(head.content_length) + '\n';
  for (const net::Header header : head.headers) text.append(header.name).append(": ").append(header.value).append("\n");
  return text;
}

/// Everything that is understood of the bytes until they end or are refused; `most` of them come at once.
template <class Most>
std::string understood(HeadParser::Kind kind, std::string_view bytes, Most most) {
  HeadParser parser(kind, kHeadLimits);
  BodyReader body(kBodyLimits);
  std::string told, buffer;
  bool in_body = false;
  const auto refused = [&told](const net::Refusal& refusal) {
    return told + "refused " + std::to_string(refusal.status) + ' ' + std::string(refusal.reason);
  };
  for (;;) {
    auto step = HeadParser::Step::kMore;
    size_t used = 0;
    if (in_body) {
      std::string_view data;
      step = body.feed(buffer, most(), used, data);
      told.append(data);
      if (step == BodyReader::Step::kRefused) return refused(body.refusal());
      in_body = step != BodyReader::Step::kDone;
    } else if (!buffer.empty()) {
      step = parser.feed(buffer);
      if (step == HeadParser::Step::kRefused) return refused(parser.refusal());
      if (step == HeadParser::Step::kDone) {
        used = parser.size();
        told += describe(parser.head());
        kind == HeadParser::Kind::kRequest ? pass_on_request(parser.head()) : pass_on_answer(parser.head());
        const auto begun = body.begin(parser.head().framing, parser.head().content_length);
        if (begun == BodyReader::Step::kRefused) return refused(body.refusal());
        in_body = begun == BodyReader::Step::kMore;
        parser.reset();
      }
    }
    must(used <= buffer.size(), "nothing is read behind the end");
    buffer.erase(0, used);
    if (step == HeadParser::Step::kDone || used > 0) continue;
    if (bytes.empty()) return told + "more";
    const size_t piece = std::min(bytes.size(), most());
    buffer.append(bytes.substr(0, piece));
    bytes.remove_prefix(piece);
  }
}

/// What comes of packed bytes is within the limit, and the same once it is packed again.
void unpacked(std::string_view bytes) {
  constexpr net::Coding kCodings[] = {net::Coding::kGzip, net::Coding::kDeflate, net::Coding::kZstd};
  const net::Coding coding = kCodings[static_cast<unsigned char>(bytes.front()) % std::size(kCodings)];
  const auto text = net::unpack(coding, bytes.substr(1), kUnpackedBytes);
  if (!text) return must(!text.error().message.empty(), "an error says why");
  must(text->size() <= kUnpackedBytes, "no more than allowed is unpacked");
  const auto packed = net::pack(coding, *text);
  if (packed) must(net::unpack(coding, *packed, text->size()).value() == *text, "and it is the same once it was packed again");
}

}  // namespace

void pass_on_request(net::Head head) {
  if (net::decode_target(head.target, head.path, head.query)) return;  // refused
  if (head.target == "*") return;                                      // answered by the server itself
  const auto target = router::parse_target(head);
  if (!target) return;
  const router::Endpoint behind{.url = "http://b/m", .origin = {"b", 80}, .path = "/m"};
  std::string path, scratch, text;
  router::write_target(head, *target, behind, path);
  std::string meant, query;
  must(!net::decode_target(path, meant, query), "a target that is written is accepted");
  must(meant == "/m" + std::string(target->rest) && query == head.query, "and means the same");

  router::rewrite_request(head, "192.0.2.1:5", true, scratch);
  const bool chunked = head.framing == Framing::kChunked;
  const auto length = chunked ? std::nullopt : std::optional(head.content_length);
  must(net::valid_request_line(head.method, path), "its first line can be written");
  net::write_request_head("b:80", {.method = head.method, .target = path, .headers = head.headers, .length = length}, text);
  const net::Head again = read_again(HeadParser::Kind::kRequest, text);
  must(again.method == head.method && again.target == path, "the request is the same");
  must((again.framing == Framing::kChunked) == chunked && again.content_length == length.value_or(0), "its body is as long");
  for (const net::Header header : again.headers) must(!net::is_hop_by_hop(header.name), "what belongs to a connection ends with it");
}

void http_anything(std::string_view input) {
  if (input.starts_with('h')) return h2_anything(input.substr(1));
  if (input.starts_with('z') && input.size() > 1) return unpacked(input.substr(1));
  if (input.size() < 2 || (input[0] != 'r' && input[0] != 'a')) return;
  const auto kind = input[0] == 'r' ? HeadParser::Kind::kRequest : HeadParser::Kind::kResponse;
  std::minstd_rand random(static_cast<unsigned char>(input[1]));
  const std::string_view bytes = input.substr(2);
  const std::string whole = understood(kind, bytes, [] { return size_t{1} << 20; });
  must(understood(kind, bytes, [&random] { return size_t{1 + random() % 7}; }) == whole, "cuts change nothing");
}

}  // namespace serin::fuzz
