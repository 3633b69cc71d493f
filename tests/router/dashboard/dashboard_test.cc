// dashboard_test.cc: the files of the page as the admin port hands them out. What they do in a browser is tested in tests/browser.

#include "router/dashboard/dashboard.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <string>
#include <vector>

namespace serin::router {
namespace {

using testing::HasSubstr;
using testing::Not;

net::Response get(const std::string& path, const std::string& encodings = "", const std::string& known = "") {
  net::Request request{.method = "GET", .target = path, .path = path};
  if (!encodings.empty()) request.headers.set("Accept-Encoding", encodings);
  if (!known.empty()) request.headers.set("If-None-Match", known);
  return dashboard_answer(request).value_or(net::Response{.status = 0});
}

std::string decompressed(const std::string& gzip) {
  std::string text(size_t{1} << 20, '\0');
  z_stream stream{};
  inflateInit2(&stream, 16 + MAX_WBITS);
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(gzip.data()));
  stream.avail_in = static_cast<unsigned>(gzip.size());
  stream.next_out = reinterpret_cast<unsigned char*>(text.data());
  stream.avail_out = static_cast<unsigned>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

TEST(Dashboard, FilesHaveTheirTypesAndAreTheSameCompressedOrNot) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"/", "text/html"}, {"/dashboard.js", "text/javascript"}, {"/dashboard.css", "text/css"}};
  for (const auto& [path, type] : files) {
    const auto plain = get(path), packed = get(path, "gzip, deflate, br");
    EXPECT_EQ(plain.status, 200) << path;
    EXPECT_THAT(std::string(plain.headers.get("content-type")), HasSubstr(type));
    EXPECT_FALSE(plain.headers.has("content-encoding"));
    EXPECT_EQ(packed.headers.get("content-encoding"), "gzip");
    EXPECT_EQ(decompressed(packed.body), plain.body) << path;
    EXPECT_EQ(packed.headers.get("vary"), "Accept-Encoding");
    EXPECT_EQ(packed.headers.get("x-content-type-options"), "nosniff");
  }
}

TEST(Dashboard, ACompressedAnswerGoesOnlyToWhoTakesIt) {
  for (const char* takes : {"gzip", "br, gzip", "gzip;q=0.5", "br;q=1.0,  gzip ; q=0.8"})
    EXPECT_TRUE(get("/", takes).headers.has("content-encoding")) << takes;
  for (const char* refuses : {"", "br", "gzip;q=0", "gzip;q=0.0", "identity", "x-gzip"})
    EXPECT_FALSE(get("/", refuses).headers.has("content-encoding")) << refuses;
}

TEST(Dashboard, WhoHasItAlreadyIsToldSo) {
  const std::string tag(get("/dashboard.js").headers.get("etag"));
  for (const std::string& known : {tag, "\"other\", " + tag, "W/" + tag}) {
    const auto same = get("/dashboard.js", "gzip", known);
    EXPECT_EQ(same.status, 304) << known;
    EXPECT_TRUE(same.body.empty());
    EXPECT_EQ(same.headers.get("etag"), tag);
  }
  EXPECT_EQ(get("/dashboard.js", "gzip", "\"other\"").status, 200);
  EXPECT_NE(get("/dashboard.css").headers.get("etag"), tag);
}

TEST(Dashboard, ThePolicyAllowsNothingOfAnybodyElse) {
  const std::string policy(get("/").headers.get("content-security-policy"));
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_THAT(policy, Not(HasSubstr("http")));
  for (const char* path : {"/", "/dashboard.js", "/dashboard.css"}) EXPECT_THAT(get(path).body, Not(HasSubstr("//cdn"))) << path;
}

TEST(Dashboard, OtherPathsAndMethodsAreNotItsOwn) {
  for (const char* path : {"/index", "/dashboard", "/src/app.tsx", "//", "/v1/rollouts"}) EXPECT_EQ(get(path).status, 0) << path;
  EXPECT_FALSE(dashboard_answer({.method = "POST", .target = "/", .path = "/"}));
  EXPECT_TRUE(dashboard_answer({.method = "HEAD", .target = "/", .path = "/"}));
}

TEST(Dashboard, IsSmall) {
  size_t bytes = 0;
  for (const char* path : {"/", "/dashboard.js", "/dashboard.css"}) bytes += get(path, "gzip").body.size();
  EXPECT_LT(bytes, 64U << 10) << "it is in everybody's program";
}

}  // namespace
}  // namespace serin::router
