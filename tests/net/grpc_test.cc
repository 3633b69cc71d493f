// grpc_test.cc: the texts and bytes of gRPC, as its specification writes them.

#include "runtime/net/grpc.h"

#include <gmock/gmock.h>

#include <atomic>

#include "runtime/net/grpc_server.h"
#include "tests/base/eventually.h"
#include "tests/net/h2_peer.h"

namespace serin::net {
namespace {

using namespace std::chrono_literals;

Head call(std::string_view content_type) {
  Head head;
  head.http2 = true;
  head.method = "POST";
  head.headers.add("content-type", content_type);
  return head;
}

TEST(Grpc, KnowsItsCalls) {
  for (const std::string_view type : {"application/grpc", "application/grpc+proto", "application/grpc;charset=x"})
    EXPECT_TRUE(is_grpc(call(type)));
  for (const std::string_view type : {"application/grpc-web", "application/grpcx", "application/json", ""})
    EXPECT_FALSE(is_grpc(call(type)));
  Head over_http1 = call("application/grpc");
  over_http1.http2 = false;
  EXPECT_FALSE(is_grpc(over_http1));
}

TEST(Grpc, ReadsTimeouts) {
  EXPECT_EQ(parse_grpc_timeout("1H"), 1h);
  EXPECT_EQ(parse_grpc_timeout("2M"), 2min);
  EXPECT_EQ(parse_grpc_timeout("3S"), 3s);
  EXPECT_EQ(parse_grpc_timeout("99999999m"), 99'999'999ms);
  EXPECT_EQ(parse_grpc_timeout("5u"), 5us);
  EXPECT_EQ(parse_grpc_timeout("6n"), 6ns);
  EXPECT_EQ(parse_grpc_timeout("0m"), 0ns);
  EXPECT_EQ(parse_grpc_timeout("99999999H"), std::chrono::hours(24 * 365));
  for (const std::string_view bad : {"", "1", "m", "-1m", "+1m", "1.5S", " 1m", "1m ", "1s", "100000000m", "0x1m", "1mm"})
    EXPECT_FALSE(parse_grpc_timeout(bad)) << bad;
}

TEST(Grpc, WritesTimeoutsThatFit) {
  EXPECT_EQ(print_grpc_timeout(1500us), "2m");
  EXPECT_EQ(print_grpc_timeout(-1s), "1m");
  EXPECT_EQ(print_grpc_timeout(30h), "108000S");
}

/// Takes a message and says nothing.
class Silent final : public GrpcMethod {
 public:
  void on_message(const std::shared_ptr<GrpcCall>&, std::string_view) override { ++messages; }
  std::atomic<int> messages = 0;
};

TEST(Grpc, H11_LargeMessagesShareMemory) {
  constexpr size_t kEach = 1000, kAll = 5000;
  const auto budget = std::make_shared<BodyBudget>(kEach, kAll);
  Silent method;
  Loops loops(1);
  const auto server =
      *start_grpc_server(loops, {.limits = {.body_bytes = 100'000}, .large_bodies = budget}, [&](std::string_view) { return &method; });
  const auto begin = [&](uint32_t message_bytes) {
    auto peer = test::H2Peer::connect(server->port());
    peer.send_headers(1, test::request("/a.B/C", {{"content-type", "application/grpc"}, {"te", "trailers"}}, "POST"), false);
    peer.send_data(1, '\0' + test::number(message_bytes), false);
    return peer;
  };
  {
    auto large = begin(4000);
    large.send_data(1, std::string(4000, 'x'), true);
    ASSERT_TRUE(serin::test::eventually([&] { return method.messages == 1; }));
    EXPECT_EQ(budget->left(), kAll - 3000);
    auto second = begin(4000);  // refused by what it promises
    const auto refused = second.receive_answer(1);
    EXPECT_EQ(refused.head.at("grpc-status"), "8");
    EXPECT_THAT(refused.head.at("grpc-message"), testing::HasSubstr("large messages"));
    auto ordinary = begin(kEach);
    ordinary.send_data(1, std::string(kEach, 'x'), true);
    EXPECT_TRUE(serin::test::eventually([&] { return method.messages == 2; }));
  }
  EXPECT_TRUE(serin::test::eventually([&] { return budget->left() == kAll; })) << "the calls are gone";
}

TEST(Grpc, EscapesMessages) {
  Headers headers;
  set_grpc_status(headers, GrpcStatus::kNotFound, "100 % of \n\xC3\xBC");
  EXPECT_EQ(headers.get("grpc-status"), "5");
  EXPECT_EQ(headers.get("grpc-message"), "100 %25 of %0A%C3%BC");
}

TEST(Grpc, ReadsStatuses) {
  Headers headers;
  EXPECT_FALSE(grpc_status_in(headers));
  for (const auto& [text, status] :
       {std::pair("0", GrpcStatus::kOk), std::pair("16", GrpcStatus::kUnauthenticated), std::pair("17", GrpcStatus::kUnknown)}) {
    headers.set("grpc-status", text);
    EXPECT_EQ(grpc_status_in(headers), status) << text;
  }
  for (const std::string_view bad : {"-1", "x", "1 ", "0x1"}) {
    headers.set("grpc-status", bad);
    EXPECT_FALSE(grpc_status_in(headers)) << bad;
  }
}

TEST(Grpc, StatusesOfBothWorldsMeet) {
  for (int code = 0; code <= 16; ++code) {
    const auto status = static_cast<GrpcStatus>(code);
    EXPECT_EQ(http_status_of(grpc_status_of(http_status_of(status))), status == GrpcStatus::kOk ? 500 : http_status_of(status))
        << grpc_name(status);
  }
}

TEST(Grpc, ReadsAndWritesPrefixes) {
  std::string bytes;
  append_grpc_prefix({.compressed = true, .length = 0x01020304}, bytes);
  EXPECT_EQ(bytes, "\x01\x01\x02\x03\x04");
  EXPECT_TRUE(read_grpc_prefix(bytes)->compressed);
  EXPECT_EQ(read_grpc_prefix(bytes)->length, 0x01020304u);
  bytes[0] = 2;
  EXPECT_FALSE(read_grpc_prefix(bytes));
}

}  // namespace
}  // namespace serin::net
