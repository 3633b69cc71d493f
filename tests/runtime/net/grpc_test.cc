// grpc_test.cc: the texts and bytes of gRPC, as its specification writes them.

#include "runtime/net/grpc.h"

#include <gmock/gmock.h>

#include <atomic>

#include "runtime/net/content_coding.h"
#include "runtime/net/grpc_server.h"
#include "tests/runtime/base/eventually.h"
#include "tests/runtime/net/h2_peer.h"

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

/// Takes messages and says nothing.
class Silent final : public GrpcMethod {
 public:
  explicit Silent(bool many = false) : many_(many) {}
  bool many_messages() const override { return many_; }
  void on_message(const std::shared_ptr<GrpcCall>&, std::string_view message) override {
    last = message.size();
    ++messages;
  }
  bool on_no_memory(const std::shared_ptr<GrpcCall>&, std::string_view beginning) override {
    EXPECT_TRUE(many_) << "whose only message it is has no call without it";
    EXPECT_TRUE(beginning.empty() || beginning.starts_with("xxx"));
    ++passed_over;
    return true;
  }
  std::atomic<int> messages = 0, passed_over = 0;
  std::atomic<size_t> last = 0;

 private:
  const bool many_;
};

class LargeMessages : public testing::Test {
 protected:
  static constexpr size_t kEach = 20'000, kAll = 60'000, kLimit = 70'000, kLarge = 60'000;

  test::H2Peer begin(std::string_view path, test::Fields more = {}) {
    auto peer = test::H2Peer::connect(server_->port());
    test::Fields fields = {{"content-type", "application/grpc"}, {"te", "trailers"}};
    fields.insert(fields.end(), more.begin(), more.end());
    peer.send_headers(1, test::request(std::string(path), fields, "POST"), false);
    return peer;
  }
  static std::string prefix(size_t bytes, bool compressed = false) {
    return (compressed ? '\1' : '\0') + test::number(static_cast<uint32_t>(bytes));
  }
  static void send(test::H2Peer& peer, std::string_view bytes, bool end) {
    constexpr size_t kFrame = 15'000;
    for (; bytes.size() > kFrame; bytes.remove_prefix(kFrame)) peer.send_data(1, bytes.substr(0, kFrame), false);
    peer.send_data(1, bytes, end);
  }
  bool await_messages(int count) {
    return serin::test::eventually([&] { return one_.messages + many_.messages == count; });
  }
  bool await_left(size_t bytes) {
    return serin::test::eventually([&] { return budget_->left() == bytes; });
  }
  static void expect_refused(test::H2Peer& peer, std::string_view why) {
    const auto refused = peer.receive_answer(1);
    EXPECT_EQ(refused.head.at("grpc-status"), "8");
    EXPECT_THAT(refused.head.at("grpc-message"), testing::HasSubstr(why));
  }

  const std::shared_ptr<MemoryBudget> budget_ = std::make_shared<MemoryBudget>(kEach, kAll);
  Silent one_, many_{true};
  Loops loops_{1};
  const std::unique_ptr<Server> server_ =
      *start_grpc_server(loops_, {.limits = {.body_bytes = kLimit}, .body_bytes_from = "so much do tests take", .large_bodies = budget_},
                         [this](std::string_view path) { return path == "/one" ? &one_ : &many_; });
};

TEST_F(LargeMessages, H11_APromiseTakesNoMemory) {
  auto hog = begin("/one");
  send(hog, prefix(kLarge), false);
  auto other = begin("/one");
  send(other, prefix(kLarge) + std::string(kLarge, 'x'), true);
  EXPECT_TRUE(await_messages(1));
}

TEST_F(LargeMessages, H11_TheLargestIsTakenWhereItIsAlone) {
  const auto server = *start_grpc_server(
      loops_, {.limits = {.body_bytes = kEach + kAll - 20'000}, .large_bodies = std::make_shared<MemoryBudget>(kEach, kAll - 20'000)},
      [this](std::string_view) { return &one_; });
  auto peer = test::H2Peer::connect(server->port());
  peer.send_headers(1, test::request("/one", {{"content-type", "application/grpc"}, {"te", "trailers"}}, "POST"), false);
  send(peer, prefix(kEach + kAll - 20'000) + std::string(kEach + kAll - 20'000, 'x'), true);
  EXPECT_TRUE(await_messages(1));
}

TEST_F(LargeMessages, H11_TheyShareMemoryUntilTheyAreRead) {
  auto first = begin("/one");
  send(first, prefix(kLarge) + std::string(kLarge - 1, 'x'), false);
  ASSERT_TRUE(await_left(kAll - (kLarge + GrpcPrefix::kBytes - kEach)));
  auto second = begin("/one");
  send(second, prefix(kLarge) + std::string(kLarge, 'x'), true);
  expect_refused(second, "too many large messages");
  auto ordinary = begin("/one");
  send(ordinary, prefix(kEach - 5) + std::string(kEach - 5, 'x'), true);
  EXPECT_TRUE(await_messages(1)) << "who is not large does not ask";
  send(first, "x", true);
  EXPECT_TRUE(await_messages(2));
  EXPECT_TRUE(await_left(kAll)) << "though none is answered";
  {
    auto leaves = begin("/one");
    send(leaves, prefix(kLarge) + std::string(kLarge - 1, 'x'), false);
    EXPECT_TRUE(serin::test::eventually([&] { return budget_->left() < kAll; }));
  }
  EXPECT_TRUE(await_left(kAll)) << "the call is gone";
}

TEST_F(LargeMessages, H11_AStreamKeepsNoMemoryBetweenThem) {
  auto stream = begin("/many");
  send(stream, prefix(kLarge) + std::string(kLarge, 'x'), false);
  ASSERT_TRUE(await_messages(1));
  EXPECT_TRUE(await_left(kAll));
}

TEST_F(LargeMessages, H11_AStreamGoesOnWithoutTheOneThatFindsNoMemory) {
  auto hog = begin("/one");
  send(hog, prefix(kLarge) + std::string(kLarge - 1, 'x'), false);
  ASSERT_TRUE(await_left(kAll - (kLarge + GrpcPrefix::kBytes - kEach)));
  auto stream = begin("/many");
  send(stream, prefix(3) + "abc" + prefix(kLarge) + std::string(kLarge, 'x') + prefix(4) + "abcd", false);
  EXPECT_TRUE(await_messages(2));
  EXPECT_EQ(many_.passed_over, 1);
  EXPECT_EQ(many_.last, 4u) << "nothing of it is taken for another message";
  EXPECT_TRUE(await_left(kAll - (kLarge + GrpcPrefix::kBytes - kEach))) << "it holds nothing";
  send(hog, "x", true);
  ASSERT_TRUE(await_messages(3));
  send(stream, prefix(kLarge) + std::string(kLarge, 'x'), false);
  EXPECT_TRUE(await_messages(4));
  EXPECT_EQ(many_.last, kLarge);
}

TEST_F(LargeMessages, H14_AStreamGoesOnWithoutTheOneThatFindsNoMemoryToBeUnpacked) {
  auto hog = begin("/one");
  send(hog, prefix(kLarge) + std::string(kLarge - 1, 'x'), false);
  ASSERT_TRUE(await_left(kAll - (kLarge + GrpcPrefix::kBytes - kEach)));
  const std::string large = *pack(Coding::kGzip, std::string(kLarge, 'x')), small = *pack(Coding::kGzip, std::string(1000, 'y'));
  auto stream = begin("/many", {{"grpc-encoding", "gzip"}});
  send(stream, prefix(large.size(), true) + large + prefix(large.size(), true) + large + prefix(small.size(), true) + small, false);
  EXPECT_TRUE(await_messages(1));
  EXPECT_EQ(many_.passed_over, 2);
  EXPECT_EQ(many_.last, 1000u);
}

TEST_F(LargeMessages, H11_OneOverTheLimitIsToldWhereThatIsFrom) {
  auto peer = begin("/one");
  send(peer, prefix(kLimit + 1), false);
  expect_refused(peer, "over the limit of 70000 bytes: so much do tests take");
}

TEST_F(LargeMessages, H14_PackedOnesGrowWithinTheLimit) {
  const auto post = [&](size_t bytes) {
    const std::string packed = *pack(Coding::kGzip, std::string(bytes, 'x'));
    auto peer = begin("/one", {{"grpc-encoding", "gzip"}});
    send(peer, prefix(packed.size(), true) + packed, true);
    return peer;
  };
  auto within = post(kEach * 2);
  ASSERT_TRUE(await_messages(1));
  EXPECT_EQ(one_.last, kEach * 2);
  EXPECT_TRUE(await_left(kAll));
  auto bomb = post(kLimit * 100);
  expect_refused(bomb, "over the limit of");
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
