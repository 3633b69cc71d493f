// h2_fields.h: converts header fields between typed messages and nghttp2. For the .cc files of net only.
//
// nghttp2 refuses fields that are malformed in HTTP/2's own terms: missing, repeated or late pseudo-headers, upper-case names,
// connection-specific headers, a content-length that differs from the body. This file adds the rules of the HTTP/1.1 parser, because a
// message that comes over one protocol may be forwarded over the other.
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

/// Collects a head field by field, and the trailers after the body.
class FieldReader {
 public:
  FieldReader(HeadParser::Kind kind, const HeadLimits& limits) : kind_(kind), limits_(limits) {}

  void begin_head();
  void begin_trailers();
  void add(std::string_view name, std::string_view value);
  /// nghttp2 has dropped a malformed field.
  void add_malformed() { refuse(400, "header", "a header has a malformed name or value"); }
  /// All fields have come. `end`: no body follows.
  void finish_head(bool end);

  Head& head() { return head_; }
  const Head& head() const { return head_; }
  Headers& trailers() { return trailers_; }
  /// The error in the head, if any.
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

/// The fields of one outgoing message. Any name or value stays one field. A reused object allocates nothing.
class FieldWriter {
 public:
  void request(std::string_view host, const RequestHead& head);
  void answer(const AnswerHead& head);
  void trailers(const Headers& trailers);
  /// The fields for nghttp2, which copies them; invalid after any other call.
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
