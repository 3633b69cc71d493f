// content_coding_test.cc: bodies that are packed, both ways: what zlib and zstd themselves make of them, what clients ask for, and H14 of the bad input.

#include "runtime/net/content_coding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/runtime/net/raw_socket.h"
#include "tests/runtime/net/test_server.h"

namespace serin::net {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr size_t kLimit = size_t{1} << 20;
constexpr Coding kCodings[] = {Coding::kGzip, Coding::kDeflate, Coding::kZstd};

std::string text_of(size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += "the same again " + std::to_string(text.size() % 97) + ", ";
  text.resize(bytes);
  return text;
}

std::string noise(size_t bytes) {
  std::mt19937 random(7);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

std::string post(std::string_view coding, const std::string& body, std::string_view more = "") {
  return "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Encoding: " + std::string(coding) + "\r\n" + std::string(more) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

int status_of(const std::string& answer) { return answer.size() > 12 ? std::stoi(answer.substr(9, 3)) : 0; }
std::string body_of(const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }

TEST(ContentCoding, UnpacksWhatItPacked) {
  for (const Coding coding : kCodings) {
    for (const size_t size : {size_t{1000}, size_t{70'000}, kLimit}) {
      const std::string text = text_of(size);
      const auto packed = pack(coding, text);
      ASSERT_TRUE(packed) << coding_name(coding);
      EXPECT_LT(packed->size(), size / 2);
      const auto unpacked = unpack(coding, *packed, kLimit);
      ASSERT_TRUE(unpacked) << unpacked.error().message;
      EXPECT_EQ(*unpacked, text);
    }
  }
}

TEST(ContentCoding, UnpacksSeveralMembers) {
  const std::string text = text_of(5000);
  for (const Coding coding : {Coding::kGzip, Coding::kZstd}) {
    const std::string one = pack(coding, text).value();
    const auto both = unpack(coding, one + one, kLimit);
    ASSERT_TRUE(both) << both.error().message;
    EXPECT_EQ(*both, text + text);
    EXPECT_TRUE(unpack(coding, one + one, 10'000));
    EXPECT_EQ(unpack(coding, one + one, 9'999).error().code, Code::kTooLarge);
    EXPECT_FALSE(unpack(coding, one + one.substr(0, 20), kLimit));
    EXPECT_FALSE(unpack(coding, one + "something else", kLimit));
  }
  const std::string one = pack(Coding::kDeflate, text).value();
  EXPECT_FALSE(unpack(Coding::kDeflate, one + one, kLimit));
}

TEST(ContentCoding, LeavesWhatGetsNoSmaller) {
  for (const Coding coding : kCodings) EXPECT_FALSE(pack(coding, noise(5000)));
}

TEST(ContentCoding, PrefersAsTheClientDoes) {
  const struct {
    std::string_view header;
    std::optional<Coding> coding;
  } cases[] = {
      {"", {}},
      {"identity", {}},
      {"*", {}},
      {"br", {}},
      {"gzip", Coding::kGzip},
      {"GZIP", Coding::kGzip},
      {"x-gzip", Coding::kGzip},
      {"br, deflate", Coding::kDeflate},
      {"gzip, deflate", Coding::kGzip},
      {"deflate, gzip", Coding::kDeflate},
      {"gzip, deflate, br, zstd", Coding::kZstd},
      {"gzip;q=0.5, deflate;q=0.9", Coding::kDeflate},
      {"zstd;q=0.1,gzip ; q=0.2", Coding::kGzip},
      {"gzip;q=0", {}},
      {"gzip;q=0.000, zstd;q=0", {}},
      {"gzip;q=1.000", Coding::kGzip},
      {"gzip;q=2", {}},
      {"gzip;q=-1", {}},
      {"gzip;q=x", {}},
      {"gzip;level=9", {}},
      {",,;,gzip,", Coding::kGzip},
  };
  for (const auto& [header, coding] : cases) EXPECT_EQ(preferred_coding(header), coding) << header;
}

TEST(ContentCoding, ServesPackedRequestsUnpacked) {
  test::TestServer server;
  const std::string text = text_of(3000);
  for (const Coding coding : kCodings) {
    const std::string answer = server.exchange(post(coding_name(coding), *pack(coding, text)));
    EXPECT_EQ(body_of(answer), "POST /echo|" + text);
    EXPECT_FALSE(server.request(server.seen() - 1).headers.has("content-encoding"));
  }
  EXPECT_EQ(body_of(server.exchange(post("identity", text))), "POST /echo|" + text);
}

TEST(ContentCoding, PacksAnswersThatAreAskedFor) {
  test::TestServer server;
  const std::string text = text_of(3000);
  for (const Coding coding : kCodings) {
    const std::string accepts = "Accept-Encoding: " + std::string(coding_name(coding)) + "\r\n";
    const std::string answer = server.exchange(post("identity", text, accepts));
    EXPECT_THAT(answer, HasSubstr("content-encoding: " + std::string(coding_name(coding)) + "\r\n"));
    EXPECT_THAT(answer, HasSubstr("vary: accept-encoding\r\n"));
    EXPECT_EQ(unpack(coding, body_of(answer), kLimit).value(), "POST /echo|" + text);
    EXPECT_THAT(server.exchange(post("identity", "small", accepts)), Not(HasSubstr("content-encoding"))) << "not worth it";
    EXPECT_THAT(server.exchange(post("identity", noise(5000), accepts)), Not(HasSubstr("content-encoding"))) << "it would not get smaller";
  }
  EXPECT_THAT(server.exchange(post("identity", text)), HasSubstr("vary: accept-encoding\r\n")) << "another client's would be packed";
}

TEST(BadInput, H14_BombsStopAtTheBodysLimit) {
  test::TestServer server({.body_bytes = kLimit});
  for (const Coding coding : kCodings) {
    const std::string bomb = pack(coding, std::string(kLimit * 64, 'x')).value();
    ASSERT_LT(bomb.size(), kLimit / 2) << "small enough to be let in";
    EXPECT_EQ(status_of(server.exchange(post(coding_name(coding), bomb))), 413);
    EXPECT_EQ(unpack(coding, bomb, kLimit).error().code, Code::kTooLarge);
    EXPECT_EQ(status_of(server.exchange(post(coding_name(coding), *pack(coding, std::string(kLimit, 'x'))))), 200) << "just within";
  }
  EXPECT_EQ(server.seen(), 3u);
}

TEST(BadInput, H14_DamagedBodiesAreRefusedAndTheConnectionGoesOn) {
  test::TestServer server;
  for (const Coding coding : kCodings) {
    const std::string whole = *pack(coding, text_of(3000));
    const std::string flipped = whole.substr(0, 3) + static_cast<char>(whole[3] ^ 0x40) + whole.substr(4);
    for (const std::string& body : {whole.substr(0, whole.size() - 5), whole.substr(0, 1), whole + "more", text_of(100), flipped}) {
      std::string request = post(coding_name(coding), body);
      request.erase(request.find("Connection: close\r\n"), 19);
      test::RawSocket client = server.connect();
      client.send(request + "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
      EXPECT_EQ(status_of(client.receive_answer()), 400) << coding_name(coding) << ", " << body.size() << " bytes of " << whole.size();
      EXPECT_EQ(status_of(client.receive_answer()), 200);
    }
  }
}

TEST(BadInput, H14_PackedTwiceAndInWaysUnknown) {
  test::TestServer server;
  const std::string twice = *pack(Coding::kGzip, *pack(Coding::kGzip, std::string(100'000, 'x')));
  EXPECT_EQ(status_of(server.exchange(post("gzip, gzip", twice))), 400);
  EXPECT_EQ(status_of(server.exchange(post("gzip\r\nContent-Encoding: gzip", twice))), 400);
  for (const std::string_view coding : {"br", "compress", "x", "gzip2"}) {
    const std::string answer = server.exchange(post(coding, "abc"));
    EXPECT_EQ(status_of(answer), 415) << coding;
    EXPECT_THAT(answer, HasSubstr("accept-encoding: gzip, deflate, zstd\r\n"));
  }
  EXPECT_EQ(server.seen(), 0u);
}

}  // namespace
}  // namespace serin::net
