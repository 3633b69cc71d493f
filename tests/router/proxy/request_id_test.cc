// Which ID a request has: its header's, its body's, or a new one. Nothing that a body says gets into a header unseen.

#include "router/proxy/request_id.h"

#include <gtest/gtest.h>

#include "runtime/net/grpc.h"

namespace serin::router {
namespace {

std::string id_of(std::string_view header, std::string_view body, std::string_view rest = "/infer", const net::Headers& more = {}) {
  net::Head head;
  for (const net::Header each : more) head.headers.add(each.name, each.value);
  if (!header.empty()) head.headers.add("X-Request-Id", header);
  protocol::JsonPointerReader json;
  return request_id_of(head, {.service = "digits", .rest = rest, .infer = true}, body, json, 0xc0ffee);
}
std::string id_of_call(std::string_view message, Naming naming = Naming::kFields) {
  net::Head head;
  protocol::JsonPointerReader json;
  const std::string body = message.empty() ? std::string() : net::grpc_framed(message);
  return request_id_of(head, {.service = "digits", .infer = true, .grpc = true, .naming = naming}, body, json, 0xc0ffee);
}
constexpr std::string_view kNew = "0000000000c0ffee";

TEST(RequestId, TheHeaderComesFirst) {
  EXPECT_EQ(id_of("abc-1", R"({"id": "body"})"), "abc-1");
  EXPECT_EQ(id_of(std::string(128, 'x'), ""), std::string(128, 'x'));
  EXPECT_EQ(id_of(std::string(129, 'x'), R"({"id": "body"})"), "body") << "too long";
  EXPECT_EQ(id_of("two words", "{}"), kNew);
}

TEST(RequestId, ThenTheBodyOfTheOpenInferenceProtocol) {
  EXPECT_EQ(id_of("", R"({"id": "body", "inputs": []})"), "body");
  EXPECT_EQ(id_of("", R"({"inputs": [], "id": 7})"), "7");
  EXPECT_EQ(id_of("", R"({"id": "body"})", "/generate"), "body");
  EXPECT_EQ(id_of("", R"({"id": "body"})", ":predict"), kNew) << "TensorFlow Serving's has none";
  net::Headers binary;
  binary.add("Inference-Header-Content-Length", "13");
  EXPECT_EQ(id_of("", R"({"id":"body"}xxxx)", "/infer", binary), "body");
  net::Headers packed;
  packed.add("Content-Encoding", "gzip");
  EXPECT_EQ(id_of("", R"({"id":"body"})", "/infer", packed), kNew);
}

TEST(RequestId, WhatIsNoNameIsNone) {
  for (const char* body :
       {"", "{}", "{", R"({"id": ""})", R"({"id": "a\r\nx-evil: 1"})", R"({"id": "ä"})", R"({"id": {"a": 1}})", R"({"id": null})"})
    EXPECT_EQ(id_of("", body), kNew) << body;
}

TEST(RequestId, OfACall) {
  EXPECT_EQ(id_of_call("\x0a\x06"
                       "digits"
                       "\x1a\x03"
                       "a-1"),
            "a-1");
  EXPECT_EQ(id_of_call("\x0a\x06"
                       "digits"
                       "\x1a\x03"
                       "a-1",
                       Naming::kNone),
            kNew)
      << "of a method that is not known";
  EXPECT_EQ(id_of_call("\x0a\x06"
                       "digits"),
            kNew);
  EXPECT_EQ(id_of_call("\x1a\x30"
                       "a-1"),
            kNew)
      << "cut off";
  EXPECT_EQ(id_of_call(""), kNew);
}

}  // namespace
}  // namespace serin::router
