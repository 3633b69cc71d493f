// h2_fields.h: header fields between typed messages and nghttp2, both ways. For the .cc files of net only.
//
// nghttp2 refuses what is malformed in HTTP/2's own terms: pseudo-headers that are missing, double or late, upper-case names, headers of a
// connection, a content-length that the body does not keep. Here the rules of HTTP/1.1's parser are added, because what comes in over the one may
// go on over the other.
#pragma once

#include <nghttp2/nghttp2.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/net/message/head_parser.h"
#include "runtime/net/message/refusal.h"
#include "runtime/net/stream.h"

namespace serin::net {

/// Collects a head field by field, and after the body the trailers.
class FieldReader {
 public:
  FieldReader(HeadParser::Kind kind, const HeadLimits& limits) : kind_(kind), limits_(limits) {}

  void begin_head();
  void begin_trailers();
  void add(std::string_view name, std::string_view value);
  /// nghttp2 has dropped one that is malformed.
  void add_malformed() { refuse(400, "header", "a header has a malformed name or value"); }
  /// All have come. `end`: and no body follows.
  void finish_head(bool end);

  Head& head() { return head_; }
  const Head& head() const { return head_; }
  Headers& trailers() { return trailers_; }
  /// What is wrong with the head.
  const std::optional<Refusal>& refusal() const { return refusal_; }

 private:
  void add_pseudo(std::string_view name, std::string_view value);
  void add_host(std::string_view value);
  void add_cookie(std::string_view value);
  void add_length(std::string_view value);
  void check_request();
  void refuse(int status, std::string_view reason, std::string message);

  const HeadParser::Kind kind_;
  const HeadLimits limits_;
  Head head_;
  Headers trailers_;
  std::string host_;  // :authority or host
  std::optional<Refusal> refusal_;
  size_t bytes_ = 0, count_ = 0;
  bool in_trailers_ = false;
};

/// The fields of one message that goes out. Whatever a name or value holds, it stays one field. Used again it allocates nothing.
class FieldWriter {
 public:
  void request(std::string_view host, const RequestHead& head);
  void answer(const AnswerHead& head);
  void trailers(const Headers& trailers);
  /// As nghttp2 takes them, which copies them; void once anything else is called.
  const std::vector<nghttp2_nv>& fields();

 private:
  struct Field {
    size_t at, name_size, value_size;
  };
  void clear();
  void add(std::string_view name, std::string_view value);
  void add_all(const Headers& headers);
  void add_number(std::string_view name, uint64_t number);

  std::string text_;
  std::vector<Field> places_;
  std::vector<nghttp2_nv> fields_;
};

}  // namespace serin::net
