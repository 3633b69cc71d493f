// rewrite_test.cc: what of a request reaches a version, and what of its answer reaches the client.

#include "router/proxy/rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace serin::router {
namespace {

using testing::ElementsAre;

net::Head request(std::string path, std::string method = "POST") {
  net::Head made;
  made.method = std::move(method);
  made.target = path;
  made.path = std::move(path);
  return made;
}

const Endpoint kVersionTwo = {
    .url = "http://10.0.0.1:8000/v2/models/digits/versions/2", .origin = {"10.0.0.1", 8000}, .path = "/v2/models/digits/versions/2"};
const Endpoint kWholeServer = {.url = "http://10.0.0.1:8000", .origin = {"10.0.0.1", 8000}, .path = ""};

std::string target_of(const net::Head& from, const Endpoint& endpoint = kVersionTwo) {
  std::string target = "what was there before";
  write_target(from, *parse_target(from), endpoint, target);
  return target;
}

net::Headers forwarded(net::Head from, bool judged = true) {
  std::string scratch;
  rewrite_request(from, "192.0.2.7:4711", judged, scratch);
  return from.headers;
}

std::vector<std::string> names(const net::Headers& headers) {
  std::vector<std::string> found;
  for (const net::Header header : headers) found.emplace_back(header.name);
  return found;
}

TEST(ParseTarget, FindsServiceAndRest) {
  const struct {
    const char *path, *service, *rest;
  } cases[] = {
      {"/v2/models/digits/infer", "digits", "/infer"},
      {"/v2/models/digits/versions/7/infer", "digits", "/infer"},
      {"/v2/models/digits/infer/", "digits", "/infer"},
      {"/v2/models/digits/versions/7/generate", "digits", "/generate"},
      {"/v2/models/digits/ready", "digits", "/ready"},
      {"/v2/models/digits/versions/7/ready", "digits", "/ready"},
      {"/v2/models/digits", "digits", ""},
      {"/v2/models/digits/versions/7", "digits", ""},
      {"/v1/models/digits:predict", "digits", ":predict"},
      {"/v1/models/digits/versions/7:classify", "digits", ":classify"},
      {"/v1/models/digits/labels/canary:regress", "digits", ":regress"},
      {"/v1/models/digits", "digits", ""},
      {"/v1/models/digits/labels/canary/metadata", "digits", "/metadata"},
      {"/digits/prediction", "digits", "/prediction"},
      {"/GeneralModelService/inference", "GeneralModelService", "/inference"},
      {"/predict", "predict", ""},
  };
  for (const auto& [path, service, rest] : cases) {
    const net::Head asked = request(path);
    const auto target = parse_target(asked);
    ASSERT_TRUE(target) << path;
    EXPECT_EQ(target->service, service) << path;
    EXPECT_EQ(target->rest, rest) << path;
  }
}

TEST(ParseTarget, OnlyPostedInferenceIsDrawnAndJudged) {
  EXPECT_TRUE(parse_target(request("/v2/models/digits/infer"))->infer);
  EXPECT_TRUE(parse_target(request("/v2/models/digits/versions/3/infer"))->infer);
  EXPECT_TRUE(parse_target(request("/v2/models/digits/versions/3/generate"))->infer);
  EXPECT_FALSE(parse_target(request("/v2/models/digits/generate_stream"))->infer) << "nobody may wait for its end";
  EXPECT_FALSE(parse_target(request("/v2/models/digits/infer", "GET"))->infer);
  EXPECT_FALSE(parse_target(request("/v2/models/digits/ready", "POST"))->infer);
  EXPECT_FALSE(parse_target(request("/v2/models/digits/infer/more"))->infer);
  for (const char* path : {"/v1/models/digits:predict", "/V1/models/digits/Versions/2:Predict", "/v1/models/digits:classify",
                           "/v1/models/digits/labels/new:regress", "/digits/prediction", "/GeneralModelService/inference"}) {
    EXPECT_TRUE(parse_target(request(path))->infer) << path;
    EXPECT_FALSE(parse_target(request(path, "GET"))->infer) << path;
  }
  for (const char* path : {"/v1/models/digits", "/v1/models/digits/metadata", "/v1/models/digits:explain"})
    EXPECT_FALSE(parse_target(request(path))->infer) << path;
}

TEST(ParseTarget, OtherPathsAreNobodys) {
  for (const char* path : {"/", "/v2", "/v2/models", "/v2/models/", "/v2/health/ready", "/v1/models", "/v2/modelsdigits", "//digits"})
    EXPECT_FALSE(parse_target(request(path))) << path;
}

TEST(WriteTarget, TheEndpointsPathReplacesServiceAndVersion) {
  EXPECT_EQ(target_of(request("/v2/models/digits/infer")), "/v2/models/digits/versions/2/infer");
  EXPECT_EQ(target_of(request("/v2/models/digits/versions/9/infer")), "/v2/models/digits/versions/2/infer");
  EXPECT_EQ(target_of(request("/v2/models/digits", "GET")), "/v2/models/digits/versions/2");
}

TEST(WriteTarget, InEveryProtocol) {
  const Endpoint tensorflow = {
      .url = "http://10.0.0.1:8501/v1/models/digits/versions/2", .origin = {"10.0.0.1", 8501}, .path = "/v1/models/digits/versions/2"};
  EXPECT_EQ(target_of(request("/v1/models/digits:predict"), tensorflow), "/v1/models/digits/versions/2:predict");
  EXPECT_EQ(target_of(request("/v1/models/digits/labels/stable:classify"), tensorflow), "/v1/models/digits/versions/2:classify");
  EXPECT_EQ(target_of(request("/v1/models/digits/metadata", "GET"), tensorflow), "/v1/models/digits/versions/2/metadata");
  const Endpoint pipeline = {.url = "http://10.0.0.1:9999/digits_2", .origin = {"10.0.0.1", 9999}, .path = "/digits_2"};
  EXPECT_EQ(target_of(request("/digits/prediction"), pipeline), "/digits_2/prediction");
}

TEST(WriteTarget, TheQueryIsKept) {
  net::Head asked = request("/v2/models/digits/infer");
  asked.target += "?trace=1";
  asked.query = "trace=1";
  EXPECT_EQ(target_of(asked), "/v2/models/digits/versions/2/infer?trace=1");
  EXPECT_EQ(target_of(asked, kWholeServer), "/v2/models/digits/infer?trace=1");
}

TEST(WriteTarget, WithoutAnEndpointPathTheClientsIsKeptAsItCame) {
  EXPECT_EQ(target_of(request("/v2/models/digits/versions/9/infer"), kWholeServer), "/v2/models/digits/versions/9/infer");
}

// What was decoded once must be escaped again: else "%3F" becomes a query and "%252e" is decoded a second time, by the runtime.
TEST(WriteTarget, H21_ADecodedPathIsEscapedAgain) {
  const auto target = [](const std::string& decoded) { return target_of(request("/v2/models/digits" + decoded)); };
  EXPECT_EQ(target("/infer?x=1"), "/v2/models/digits/versions/2/infer%3Fx=1");
  EXPECT_EQ(target("/%2e%2e/%2e%2e/secret"), "/v2/models/digits/versions/2/%252e%252e/%252e%252e/secret");
  EXPECT_EQ(target("/a b#c"), "/v2/models/digits/versions/2/a%20b%23c");
  EXPECT_EQ(target("/\xc3\xa4"), "/v2/models/digits/versions/2/%C3%A4");
  EXPECT_EQ(target("/a-b_c.d~e:f@g!$&'()*+,;="), "/v2/models/digits/versions/2/a-b_c.d~e:f@g!$&'()*+,;=");
}

// Through the parser, because it and rewrite_request() share the work: what is about the connection never leaves the parser.
TEST(RewriteRequest, H23_HopByHopHeadersAndWhatConnectionNamesEnd) {
  net::HeadParser parser(net::HeadParser::Kind::kRequest, {.line_bytes = 1000, .head_bytes = 10'000, .header_count = 100});
  ASSERT_EQ(
      parser.feed("POST /v2/models/digits/infer HTTP/1.1\r\nHost: x\r\nAccept: a\r\nKeep-Alive: 1\r\nProxy-Connection: 1\r\n"
                  "Proxy-Authorization: secret\r\nTE: trailers\r\nTrailer: x\r\nContent-Length: 3\r\nX-One: 1\r\nX-Two: 2\r\nX-Three: 3\r\n"
                  "Connection: close, x-ONE\t,\r\nconnection: X-Three\r\nAuthorization: me\r\n\r\n"),
      net::HeadParser::Step::kDone);
  EXPECT_THAT(names(forwarded(parser.head())), ElementsAre("Host", "Accept", "X-Two", "Authorization", "X-Forwarded-For"));
}

TEST(RewriteRequest, WhatOnlyTheRouterMaySayIsStripped) {
  net::Head asked = request("/v2/models/digits/infer");
  for (const char* name : {"X-Serin-Shadow", "x-serin-force-version", "X-SERIN-TIMEOUT-MS"}) asked.headers.add(name, "1");
  EXPECT_THAT(names(forwarded(asked)), ElementsAre("X-Forwarded-For"));
}

TEST(RewriteRequest, AnAnswerThatIsJudgedIsNotAskedForPacked) {
  net::Head asked = request("/v2/models/digits/infer");
  asked.headers.add("Accept-Encoding", "gzip");
  EXPECT_THAT(names(forwarded(asked)), ElementsAre("X-Forwarded-For"));
  EXPECT_THAT(names(forwarded(asked, /*judged=*/false)), ElementsAre("Accept-Encoding", "X-Forwarded-For"));
}

TEST(RewriteRequest, ForwardedForGetsTheClientBehindTheProxiesBeforeUs) {
  net::Head asked = request("/v2/models/digits/infer");
  EXPECT_EQ(forwarded(asked).get("X-Forwarded-For"), "192.0.2.7");
  asked.headers.add("x-forwarded-for", "198.51.100.1");
  EXPECT_EQ(forwarded(asked).get("X-Forwarded-For"), "198.51.100.1, 192.0.2.7");
}

TEST(RewriteRequest, ARepeatedForwardedForLosesNobody) {
  net::Head asked = request("/v2/models/digits/infer");
  asked.headers.add("X-Forwarded-For", "198.51.100.1");
  asked.headers.add("X-Forwarded-For", "198.51.100.2");
  const net::Headers headers = forwarded(asked);
  EXPECT_EQ(headers.get("X-Forwarded-For"), "198.51.100.1, 198.51.100.2, 192.0.2.7");
  EXPECT_THAT(names(headers), ElementsAre("X-Forwarded-For"));
}

TEST(RewriteAnswer, TheBatchPassesAndTheVersionIsOurs) {
  net::Head answer;
  answer.headers.add("Content-Type", "application/json");
  answer.headers.add("Proxy-Authenticate", "Basic");
  answer.headers.add("x-serin-batch", "0123456789abcdef-7/0/1");
  answer.headers.add("x-serin-version", "forged");
  rewrite_answer(answer, "2");
  EXPECT_EQ(answer.headers.get("x-serin-version"), "2");
  EXPECT_THAT(names(answer.headers), ElementsAre("Content-Type", "x-serin-batch", "x-serin-version"));
}

}  // namespace
}  // namespace serin::router
