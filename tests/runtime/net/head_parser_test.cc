// head_parser_test.cc: heads of requests and answers, and that the verdict does not depend on how the bytes were cut.

#include "runtime/net/message/head_parser.h"

#include <gmock/gmock.h>

#include "runtime/net/message/body_reader.h"
#include "tests/runtime/net/smuggling_rows.h"

namespace serin::net {
namespace {

constexpr HeadLimits kLimits{.line_bytes = 100, .head_bytes = 1000, .header_count = 10};
using Kind = HeadParser::Kind;
using Step = HeadParser::Step;

/// What became of a message, as text, so that two ways of feeding it can be compared.
std::string outcome(Kind kind, std::string_view message, size_t step) {
  HeadParser parser(kind, kLimits);
  size_t given = 0;
  Step state = Step::kMore;
  while (state == Step::kMore && given < message.size()) {
    given = std::min(given + step, message.size());
    state = parser.feed(message.substr(0, given));
  }
  if (state == Step::kMore) return "more";
  const auto refused = [](const Refusal& refusal) { return std::to_string(refusal.status) + " " + std::string(refusal.reason); };
  if (state == Step::kRefused) return refused(parser.refusal());

  const Head& head = parser.head();
  std::string text = head.method + " " + head.target + " " + std::to_string(head.status);
  for (const Header header : head.headers) text.append(" ").append(header.name).append("=").append(header.value);
  text += head.keep_alive ? " keep" : " close";
  BodyReader reader({.bytes = 100, .chunks = 10});
  std::string body;
  state = reader.begin(head.framing, head.content_length);
  std::string_view rest = message.substr(parser.size());
  while (state == Step::kMore && !rest.empty()) {
    size_t consumed = 0;
    std::string_view data;
    state = reader.feed(rest.substr(0, step), step, consumed, data);
    body += data;
    rest.remove_prefix(consumed);
  }
  if (state == Step::kRefused) return refused(reader.refusal());
  return text + " body=" + body + (state == Step::kMore ? " more" : " rest=" + std::string(rest));
}
std::string request(std::string_view message) { return outcome(Kind::kRequest, message, message.size()); }
std::string response(std::string_view message) { return outcome(Kind::kResponse, message, message.size()); }

TEST(HeadParser, ReadsARequest) {
  EXPECT_EQ(request("GET /a?b HTTP/1.1\r\nHost: x\r\nAccept:\t*/* \r\nEmpty:\r\n\r\nrest"),
            "GET /a?b 0 Host=x Accept=*/* Empty= keep body= rest=rest");
  EXPECT_EQ(request("POST / HTTP/1.1\r\nhost: x\r\nCONTENT-LENGTH: 3\r\n\r\nabcd"), "POST / 0 host=x keep body=abc rest=d");
  EXPECT_EQ(
      request("POST / HTTP/1.1\r\nhost: x\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0002;x=\"y\"\r\nde\r\n0\r\nT: v\r\n\r\nrest"),
      "POST / 0 host=x keep body=abcde rest=rest");
  EXPECT_EQ(request("\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"), "GET / 0 Host=x keep body= rest=")
      << "an empty line after an old client's POST";
  EXPECT_EQ(request("\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"), "400 request_line");
}

TEST(HeadParser, KnowsWhetherTheConnectionStays) {
  EXPECT_EQ(request("GET / HTTP/1.1\r\nHost: x\r\nConnection: Close\r\n\r\n"), "GET / 0 Host=x close body= rest=");
  EXPECT_EQ(request("GET / HTTP/1.0\r\n\r\n"), "GET / 0 close body= rest=");
  EXPECT_EQ(request("GET / HTTP/1.0\r\nConnection: x, keep-alive\r\nX: 1\r\n\r\n"), "GET / 0 keep body= rest=") << "X is of the connection";
  EXPECT_EQ(request("GET / HTTP/1.1\r\nHost: x\r\nConnection: a b\r\n\r\n"), "400 connection");
}

TEST(HeadParser, ReadsAnAnswer) {
  EXPECT_EQ(response("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx: y\r\n\r\nok"), "  200 x=y keep body=ok rest=");
  EXPECT_EQ(response("HTTP/1.1 204 \r\n\r\n"), "  204 keep body= rest=");
  EXPECT_EQ(response("HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n"), "  304 keep body= rest=");
  EXPECT_EQ(response("HTTP/1.0 200 OK\r\n\r\nuntil the end"), "  200 close body=until the end more");
}

TEST(HeadParser, Limits) {
  const auto get = [](size_t target, const std::string& headers) {
    return "GET /" + std::string(target, 'a') + " HTTP/1.1\r\n" + headers + "\r\n";
  };
  EXPECT_EQ(request(get(86, "Host: x\r\n")).substr(0, 5), "GET /");
  EXPECT_EQ(request(get(87, "Host: x\r\n")), "414 request_line_too_long");
  EXPECT_EQ(request("GET /" + std::string(200, 'a')), "414 request_line_too_long") << "without waiting for its end";
  EXPECT_EQ(request(get(1, "X: " + std::string(1000, 'a'))), "431 headers_too_large");
  std::string many;
  for (int i = 0; i < 11; ++i) many += "X: y\r\n";
  EXPECT_EQ(request(get(1, many)), "431 too_many_headers");
}

TEST(HeadParser, TheVerdictDoesNotDependOnHowTheBytesAreCut) {
  std::vector<std::string> requests{
      "GET /a?b HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n",
      "\r\nPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\nt: u\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" + std::string(101, 'x'),
      "GET /" + std::string(90, 'a') + " HTTP/1.1\r\n",
      "GET /" + std::string(90, 'a') + " HTTP/1.1 bad\n",
      "GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(1000, 'a') + "\nY",
  };
  for (const auto& row : test::smuggling_rows()) requests.push_back(row.message);
  for (const std::string& message : requests) {
    const std::string expected = outcome(Kind::kRequest, message, message.size());
    for (size_t step = 1; step < 20; ++step) EXPECT_EQ(outcome(Kind::kRequest, message, step), expected) << message;
  }
  const std::string answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nx: y\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
  EXPECT_EQ(outcome(Kind::kResponse, answer, 1), response(answer));
}

TEST(HeadParser, CanBeUsedAgain) {
  HeadParser parser(Kind::kRequest, kLimits);
  ASSERT_EQ(parser.feed("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\n"), Step::kDone);
  parser.reset();
  ASSERT_EQ(parser.feed("GET / HTTP/1.1\r\nHost: y\r\n\r\n"), Step::kDone);
  EXPECT_EQ(parser.head().framing, Framing::kNone);
  EXPECT_TRUE(parser.head().keep_alive);
  EXPECT_EQ(parser.head().headers.get("host"), "y");
}

TEST(BodyReader, WhatIsReadPastItIsCountedAllTheSame) {
  BodyReader reader({.bytes = 1'000'000, .chunks = 10});
  ASSERT_EQ(reader.begin(Framing::kLength, 300'000), Step::kMore);
  size_t consumed = 0;
  std::string_view data;
  ASSERT_EQ(reader.feed("0123456789", 100, consumed, data), Step::kMore);  // what came with the head
  EXPECT_EQ(data, "0123456789");
  EXPECT_EQ(reader.skipped(200'000), Step::kMore);
  EXPECT_EQ(reader.left(), 99'990u);
  EXPECT_EQ(reader.skipped(99'990), Step::kDone);
}

TEST(BodyReader, GivesNoMoreThanThereIsRoomFor) {
  BodyReader reader({.bytes = 100, .chunks = 10});
  ASSERT_EQ(reader.begin(Framing::kChunked, 0), Step::kMore);
  size_t consumed = 0;
  std::string_view data;
  ASSERT_EQ(reader.feed("5\r\nabcde\r\n0\r\n\r\n", 2, consumed, data), Step::kMore);
  EXPECT_EQ(data, "ab");
  EXPECT_EQ(consumed, 5u);
}

}  // namespace
}  // namespace serin::net
