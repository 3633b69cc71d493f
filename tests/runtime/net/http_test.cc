// http_test.cc: headers, JSON strings, URLs and targets.

#include "runtime/net/http.h"

#include <gmock/gmock.h>

#include "runtime/net/target.h"

namespace serin::net {
namespace {

TEST(Headers, IgnoreCaseAndKeepOrder) {
  Headers headers;
  headers.add("X-A", "1");
  headers.add("x-b", "2");
  headers.add("x-a", "3");
  EXPECT_EQ(headers.get("x-A"), "1");
  EXPECT_EQ(headers.size(), 3u);
  headers.set("X-a", "4");
  EXPECT_EQ(headers.size(), 2u);
  EXPECT_EQ(headers.get("x-a"), "4");
  headers.remove("X-B");
  EXPECT_FALSE(headers.has("x-b"));
  EXPECT_EQ(headers.get("x-b"), "");
}

TEST(Json, QuotesWhateverComes) {
  EXPECT_EQ(json_quote("a\"b\\c\n\x01\x7F"), R"("a\"b\\c\n\u0001\u007f")");
  EXPECT_EQ(json_quote("\xC3\xA4\xF0\x9F\x90\xA6"), "\"\xC3\xA4\xF0\x9F\x90\xA6\"");
  EXPECT_EQ(json_quote("a\xFF\xC0\xAF"), "\"a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(json_error(404, "no 'x'").body, R"({"error":"no 'x'"})");
}

TEST(Url, Parts) {
  const auto url = parse_url("http://h:81/a/b?c");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->origin.host, "h");
  EXPECT_EQ(url->origin.port, 81);
  EXPECT_EQ(url->path, "/a/b?c");
  EXPECT_EQ(parse_url("http://h")->origin.port, 80);
  EXPECT_EQ(parse_url("http://h")->path, "/");
  EXPECT_EQ(parse_url("http://[::1]:8000")->origin.host, "::1");
  EXPECT_EQ(parse_url("http://[::1]:8000")->origin.port, 8000);
  EXPECT_FALSE(url->origin.secure);
  EXPECT_EQ(parse_url("https://h")->origin, (Origin{"h", 443, true}));
  EXPECT_EQ(parse_url("https://[::1]:8443/x")->origin, (Origin{"::1", 8443, true}));
  for (const auto* bad : {"", "h:1", "https:/h", "ftp://h", "http://", "https://", "http://:1", "http://h:", "http://h:0", "http://h:65536",
                          "http://h:1x", "http://a b", "http://u@h", "http://[::1", "http://::1", "http://[::1]x:1", "http://h/a b"}) {
    EXPECT_FALSE(parse_url(bad)) << bad;
  }
}

TEST(Target, IsDecodedOnce) {
  std::string path, query;
  ASSERT_FALSE(decode_target("/a%20%25b//c;d?e=%20?f", path, query));
  EXPECT_EQ(path, "/a %b//c;d");
  EXPECT_EQ(query, "e=%20?f");
  for (const auto* bad :
       {"/..", "/.", "/../a", "/a/..", "/%2e.", "/a/%2E/b", "/%", "/%a", "/%ag", "/%00", "/%7f", "/%2f", "/%0a", "/%ff", "/%c0%ae"}) {
    EXPECT_TRUE(decode_target(bad, path, query)) << bad;
  }
}

}  // namespace
}  // namespace serin::net
