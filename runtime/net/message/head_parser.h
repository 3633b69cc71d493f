// head_parser.h: parses the head of an HTTP/1.1 message strictly.
//
//   HeadParser parser(HeadParser::Kind::kRequest, limits);
//   switch (parser.feed(bytes_since_the_head_began)) {       // again with more, until it is not kMore
//     case HeadParser::Step::kDone: use(parser.head()); body_begins_at(parser.size());
//     case HeadParser::Step::kRefused: answer(parser.refusal());
//   }
//
// Input that two parsers could understand differently is refused, never repaired: request smuggling uses such differences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/net/http.h"
#include "runtime/net/message/refusal.h"

namespace serin::net {

struct HeadLimits {
  size_t line_bytes;    ///< of the first line
  size_t head_bytes;    ///< of all
  size_t header_count;  ///< over it: 431
};

enum class Framing : uint8_t {
  kNone,       ///< no body
  kLength,     ///< Content-Length
  kChunked,    ///< Transfer-Encoding: chunked
  kUntilClose  ///< answers only: everything until the connection ends
};

struct Head {
  std::string method, target;  ///< for a request
  std::string path, query;     ///< from the target: see target.h; the parser leaves them empty
  int status = 0;              ///< for an answer
  int minor_version = 1;       ///< HTTP/1.x
  bool http2 = false;          ///< it came over HTTP/2: `framing` is then kChunked if the length is unknown
  Headers headers;             ///< without headers of the connection: see is_hop_by_hop()
  Framing framing = Framing::kNone;
  uint64_t content_length = 0;  ///< if framing is kLength
  bool keep_alive = true;
  bool expects_continue = false;

  void clear();  ///< keeps the memory
};

class HeadParser {
 public:
  enum class Kind : uint8_t { kRequest, kResponse };
  enum class Step : uint8_t { kMore, kDone, kRefused };

  HeadParser(Kind kind, const HeadLimits& limits) : kind_(kind), limits_(limits) {}

  /// `bytes` starts at the start of the head and contains at least the bytes of the last call. Each byte is examined once over all calls.
  Step feed(std::string_view bytes);
  /// Forgets the head and waits for the next.
  void reset();

  Head& head() { return head_; }
  size_t size() const { return at_; }  ///< bytes of the head, including its last line end; valid when done
  const Refusal& refusal() const { return refusal_; }

 private:
  bool line(std::string_view text);
  bool request_line(std::string_view text);
  bool status_line(std::string_view text);
  bool header_line(std::string_view text);
  bool content_length(std::string_view value);
  bool transfer_encoding(std::string_view value);
  bool host(std::string_view value);
  bool connection(std::string_view value);
  bool expect(std::string_view value);
  bool end_of_head();
  bool version(std::string_view text);
  bool absolute_target();
  bool refuse(int status, std::string_view reason, std::string message);

  const Kind kind_;
  const HeadLimits limits_;
  Head head_;
  Refusal refusal_;
  size_t at_ = 0;       // lines before it are parsed
  size_t scanned_ = 0;  // no line feed between at_ and here
  size_t header_count_ = 0;
  bool first_line_done_ = false, blank_line_seen_ = false;
  bool has_length_ = false, has_encoding_ = false, says_close_ = false, says_keep_alive_ = false;
  std::string host_;
  size_t host_count_ = 0;
  std::string connection_names_;  // names in Connection other than close and keep-alive: ",a,b"
};

/// Whether it is a header of this connection, not of the message: such a header is never kept or forwarded.
bool is_hop_by_hop(std::string_view name);
/// A host with an optional port: "a.example:80", "[::1]:8080". Syntax only.
bool is_host(std::string_view value);
/// Splits "name: value" in heads and trailers; nothing if it is malformed.
struct FieldLine {
  std::string_view name, value;
};
bool parse_field_line(std::string_view text, FieldLine& field);

}  // namespace serin::net
