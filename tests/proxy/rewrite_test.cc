// rewrite_test.cc: what of a request reaches a version, and what of its answer reaches the client.

#include "router/proxy/rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace serin::router {
namespace {

using testing::ElementsAre;

net::Request request(std::string path, std::string method = "POST") {
  net::Request made;
  made.method = std::move(method);
  made.target = path;
  made.path = std::move(path);
  made.peer = "192.0.2.7:4711";
  return made;
}

const Endpoint kVersionTwo = {
    .url = "http://10.0.0.1:8000/v2/models/digits/versions/2", .origin = {"10.0.0.1", 8000}, .path = "/v2/models/digits/versions/2"};
const Endpoint kWholeServer = {.url = "http://10.0.0.1:8000", .origin = {"10.0.0.1", 8000}, .path = ""};

net::Outgoing forwarded(const net::Request& from, const Endpoint& endpoint = kVersionTwo) {
  return make_outgoing(from, *parse_target(from), endpoint);
}

std::vector<std::string> names(const net::Headers& headers) {
  std::vector<std::string> found;
  for (const net::Header& header : headers.all()) found.push_back(header.name);
  return found;
}

TEST(ParseTarget, FindsServiceAndRest) {
  const struct {
    const char *path, *service, *rest;
  } cases[] = {
      {"/v2/models/digits/infer", "digits", "/infer"},
      {"/v2/models/digits/versions/7/infer", "digits", "/infer"},
      {"/v2/models/digits/infer/", "digits", "/infer"},
      {"/v2/models/digits/ready", "digits", "/ready"},
      {"/v2/models/digits/versions/7/ready", "digits", "/ready"},
      {"/v2/models/digits", "digits", ""},
      {"/v2/models/digits/versions/7", "digits", ""},
      {"/v2/models/", "", ""},
  };
  for (const auto& [path, service, rest] : cases) {
    const auto target = parse_target(request(path));
    ASSERT_TRUE(target) << path;
    EXPECT_EQ(target->service, service) << path;
    EXPECT_EQ(target->rest, rest) << path;
  }
}

TEST(ParseTarget, OnlyPostedInferenceIsDrawnAndJudged) {
  EXPECT_TRUE(parse_target(request("/v2/models/digits/infer"))->infer);
  EXPECT_TRUE(parse_target(request("/v2/models/digits/versions/3/infer"))->infer);
  EXPECT_FALSE(parse_target(request("/v2/models/digits/infer", "GET"))->infer);
  EXPECT_FALSE(parse_target(request("/v2/models/digits/ready", "POST"))->infer);
  EXPECT_FALSE(parse_target(request("/v2/models/digits/infer/more"))->infer);
}

TEST(ParseTarget, OtherPathsAreNobodys) {
  for (const char* path : {"/", "/v2", "/v2/models", "/v2/health/ready", "/v1/models/digits", "/v2/modelsdigits"})
    EXPECT_FALSE(parse_target(request(path))) << path;
}

TEST(MakeOutgoing, TheEndpointsPathReplacesServiceAndVersion) {
  EXPECT_EQ(forwarded(request("/v2/models/digits/infer")).target, "/v2/models/digits/versions/2/infer");
  EXPECT_EQ(forwarded(request("/v2/models/digits/versions/9/infer")).target, "/v2/models/digits/versions/2/infer");
  EXPECT_EQ(forwarded(request("/v2/models/digits", "GET")).target, "/v2/models/digits/versions/2");
}

TEST(MakeOutgoing, TheQueryIsKept) {
  net::Request asked = request("/v2/models/digits/infer");
  asked.target += "?trace=1";
  asked.query = "trace=1";
  EXPECT_EQ(forwarded(asked).target, "/v2/models/digits/versions/2/infer?trace=1");
  EXPECT_EQ(forwarded(asked, kWholeServer).target, "/v2/models/digits/infer?trace=1");
}

TEST(MakeOutgoing, WithoutAnEndpointPathTheClientsIsKeptAsItCame) {
  EXPECT_EQ(forwarded(request("/v2/models/digits/versions/9/infer"), kWholeServer).target, "/v2/models/digits/versions/9/infer");
}

// What was decoded once must be escaped again: else "%3F" becomes a query and "%252e" is decoded a second time, by the runtime.
TEST(MakeOutgoing, H21_ADecodedPathIsEscapedAgain) {
  const auto target = [](std::string decoded) { return forwarded(request("/v2/models/digits" + decoded)).target; };
  EXPECT_EQ(target("/infer?x=1"), "/v2/models/digits/versions/2/infer%3Fx=1");
  EXPECT_EQ(target("/%2e%2e/%2e%2e/secret"), "/v2/models/digits/versions/2/%252e%252e/%252e%252e/secret");
  EXPECT_EQ(target("/a b#c"), "/v2/models/digits/versions/2/a%20b%23c");
  EXPECT_EQ(target("/\xc3\xa4"), "/v2/models/digits/versions/2/%C3%A4");
  EXPECT_EQ(target("/a-b_c.d~e:f@g!$&'()*+,;="), "/v2/models/digits/versions/2/a-b_c.d~e:f@g!$&'()*+,;=");
}

TEST(MakeOutgoing, OrdinaryHeadersPassHopByHopOnesEnd) {
  net::Request asked = request("/v2/models/digits/infer");
  for (const char* name : {"Accept", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "TE", "Trailer", "Transfer-Encoding",
                           "Upgrade", "Connection", "Authorization", "X-Request-Id"})
    asked.headers.add(name, "something");
  EXPECT_THAT(names(forwarded(asked).headers), ElementsAre("Accept", "Authorization", "X-Request-Id", "X-Forwarded-For"));
}

TEST(MakeOutgoing, H23_WhatConnectionNamesEnds) {
  net::Request asked = request("/v2/models/digits/infer");
  asked.headers.add("X-One", "1");
  asked.headers.add("X-Two", "2");
  asked.headers.add("X-Three", "3");
  asked.headers.add("Connection", "close, x-ONE\t,");
  asked.headers.add("connection", "X-Three");
  EXPECT_THAT(names(forwarded(asked).headers), ElementsAre("X-Two", "X-Forwarded-For"));
}

TEST(MakeOutgoing, WhatOnlyTheRouterMaySayIsStripped) {
  net::Request asked = request("/v2/models/digits/infer");
  for (const char* name : {"X-Serin-Shadow", "x-serin-force-version", "X-SERIN-TIMEOUT-MS", "Host", "Content-Length"})
    asked.headers.add(name, "1");
  EXPECT_THAT(names(forwarded(asked).headers), ElementsAre("X-Forwarded-For"));
}

TEST(MakeOutgoing, ForwardedForGetsTheClientBehindTheProxiesBeforeUs) {
  net::Request asked = request("/v2/models/digits/infer");
  EXPECT_EQ(forwarded(asked).headers.get("X-Forwarded-For"), "192.0.2.7");
  asked.headers.add("x-forwarded-for", "198.51.100.1");
  EXPECT_EQ(forwarded(asked).headers.get("X-Forwarded-For"), "198.51.100.1, 192.0.2.7");
}

TEST(MakeOutgoing, ARepeatedForwardedForLosesNobody) {
  net::Request asked = request("/v2/models/digits/infer");
  asked.headers.add("X-Forwarded-For", "198.51.100.1");
  asked.headers.add("X-Forwarded-For", "198.51.100.2");
  const net::Outgoing outgoing = forwarded(asked);
  EXPECT_EQ(outgoing.headers.get("X-Forwarded-For"), "198.51.100.1, 198.51.100.2, 192.0.2.7");
  EXPECT_THAT(names(outgoing.headers), ElementsAre("X-Forwarded-For"));
}

TEST(MakeAnswer, StatusBodyAndBatchPassAndTheVersionIsOurs) {
  net::Response upstream;
  upstream.status = 429;
  upstream.headers.add("Content-Type", "application/json");
  upstream.headers.add("Retry-After", "1");
  upstream.headers.add("x-serin-batch", "0123456789abcdef-7/0/1");
  upstream.headers.add("x-serin-version", "forged");
  upstream.headers.add("Connection", "close, x-private");
  upstream.headers.add("X-Private", "1");
  upstream.headers.add("Content-Length", "3");
  upstream.body = "abc";
  const net::Response answer = make_answer(upstream, "2");
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.body, "abc");
  EXPECT_EQ(answer.headers.get("x-serin-version"), "2");
  EXPECT_EQ(answer.headers.get("x-serin-batch"), "0123456789abcdef-7/0/1");
  EXPECT_THAT(names(answer.headers), testing::UnorderedElementsAre("Content-Type", "Retry-After", "x-serin-batch", "x-serin-version"));
}

}  // namespace
}  // namespace serin::router
