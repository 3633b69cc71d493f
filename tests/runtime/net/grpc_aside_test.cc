// grpc_aside_test.cc: messages that are read, or written, beside the one io thread there is. That waits until a test lets it, so that what else is answered is answered
// meanwhile.

#include <gmock/gmock.h>

#include <atomic>
#include <semaphore>

#include "runtime/net/content_coding.h"
#include "runtime/net/grpc_server.h"
#include "runtime/net/loop.h"
#include "tests/runtime/base/eventually.h"
#include "tests/runtime/net/h2_peer.h"

namespace serin::net {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

/// Says how long each message was, once it is read.
class Reading final : public GrpcMethod {
 public:
  bool many_messages() const override { return true; }
  void on_message(const std::shared_ptr<GrpcCall>& call, std::string_view message) override {
    ++given;
    const auto said = std::make_shared<std::string>();
    call->read_aside(
        [this, message, said] {
          ++begun;
          EXPECT_TRUE(may_end.try_acquire_for(20s));
          *said = std::to_string(message.size()) + (message.find_first_not_of(message[0]) == std::string_view::npos ? "" : " mixed");
        },
        [this, call, said] {
          ++done;
          if (call->ended()) ++too_late;
          call->send(grpc_framed(*said));
        });
  }
  void on_half_close(const std::shared_ptr<GrpcCall>& call) override { call->finish(GrpcStatus::kOk); }

  std::counting_semaphore<> may_end{0};
  std::atomic<int> given = 0, begun = 0, done = 0, too_late = 0;
};

/// Sends back each message, written aside.
class Writing final : public GrpcMethod {
 public:
  explicit Writing(Reading& other) : counts_(other) {}
  bool many_messages() const override { return true; }
  void on_message(const std::shared_ptr<GrpcCall>& call, std::string_view message) override {
    const auto written = std::make_shared<std::string>();
    call->write_aside(
        [this, written, text = std::string(message)] {
          ++counts_.begun;
          EXPECT_TRUE(counts_.may_end.try_acquire_for(20s));
          *written = text;
        },
        [this, call, written] {
          ++counts_.done;
          if (call->ended()) ++counts_.too_late;
          call->send(grpc_framed(*written));
        });
  }

 private:
  Reading& counts_;
};

class Echo final : public GrpcMethod {
 public:
  void on_message(const std::shared_ptr<GrpcCall>& call, std::string_view message) override {
    call->send(grpc_framed(message));
    call->finish(GrpcStatus::kOk);
  }
};

class ReadAside : public testing::Test {
 protected:
  static constexpr size_t kEach = 20'000, kAll = 8'000'000,
                          kLarge = 30'000;  // all that a test sends fits into the window before SETTINGS are acknowledged

  ~ReadAside() override { method_.may_end.release(100); }

  test::H2Peer begin(test::Fields more = {}, std::string_view path = "/read") {
    auto peer = test::H2Peer::connect(server_->port());
    test::Fields fields = {{"content-type", "application/grpc"}, {"te", "trailers"}};
    fields.insert(fields.end(), more.begin(), more.end());
    peer.send_headers(1, test::request(std::string(path), fields, "POST"), false);
    return peer;
  }
  static std::string framed(std::string_view message, bool compressed = false) {
    std::string out = grpc_framed(message);
    out[0] = static_cast<char>(compressed);
    return out;
  }
  static void send(test::H2Peer& peer, std::string_view bytes, bool end) {
    constexpr size_t kFrame = 15'000;
    for (; bytes.size() > kFrame; bytes.remove_prefix(kFrame)) peer.send_data(1, bytes.substr(0, kFrame), false);
    peer.send_data(1, bytes, end);
  }
  static bool await(const std::atomic<int>& counted, int number) {
    return serin::test::eventually([&] { return counted == number; });
  }
  bool others_are_answered() {
    auto peer = begin({}, "/echo");
    send(peer, framed("hello"), true);
    return peer.receive_answer(1).body == framed("hello");
  }

  const std::shared_ptr<MemoryBudget> budget_ = std::make_shared<MemoryBudget>(kEach, kAll);
  Reading method_;
  Writing writing_{method_};
  Echo echo_;
  Loops loops_{1};
  const std::unique_ptr<Server> server_ =
      *start_grpc_server(loops_, {.limits = {.body_bytes = kAll}, .large_bodies = budget_}, [this](std::string_view path) -> GrpcMethod* {
        if (path == "/write") return &writing_;
        return path == "/read" ? static_cast<GrpcMethod*>(&method_) : &echo_;
      });
};

TEST_F(ReadAside, OthersAreAnsweredMeanwhile) {
  auto peer = begin();
  send(peer, framed(std::string(kLarge, 'x')), true);
  ASSERT_TRUE(await(method_.begun, 1));
  EXPECT_TRUE(others_are_answered());
  EXPECT_EQ(method_.done, 0);
  EXPECT_LT(budget_->left(), kAll) << "the message is still there";
  method_.may_end.release();
  const auto answer = peer.receive_answer(1);
  EXPECT_EQ(answer.body, framed("30000"));
  EXPECT_EQ(answer.trailers.at("grpc-status"), "0");
  EXPECT_TRUE(serin::test::eventually([&] { return budget_->left() == kAll; }));
}

TEST_F(ReadAside, TheNextOneComesAfterIt) {
  auto peer = begin();
  send(peer, framed(std::string(kLarge, 'x')) + framed("yyy") + framed(std::string(kLarge + 1, 'z')), true);
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(await(method_.begun, i)) << i << " " << method_.given << " " << method_.done;
    EXPECT_TRUE(others_are_answered());
    EXPECT_EQ(method_.given, i);
    method_.may_end.release();
  }
  EXPECT_EQ(peer.receive_answer(1).body, framed("30000") + framed("3") + framed("30001"));
}

TEST_F(ReadAside, TheNextOneFindsNoMemoryWhileItIsThere) {
  const auto tight = std::make_shared<MemoryBudget>(kEach, kEach);
  const auto server =
      *start_grpc_server(loops_, {.limits = {.body_bytes = kAll}, .large_bodies = tight}, [this](std::string_view) { return &method_; });
  auto peer = test::H2Peer::connect(server->port());
  peer.send_headers(1, test::request("/read", {{"content-type", "application/grpc"}, {"te", "trailers"}}, "POST"), false);
  send(peer, framed(std::string(kLarge, 'x')) + framed(std::string(kLarge - 1, 'y')), true);
  ASSERT_TRUE(await(method_.begun, 1));
  method_.may_end.release(2);
  EXPECT_EQ(peer.receive_answer(1).body, framed("30000") + framed("29999"));
}

TEST_F(ReadAside, WhatUnpacksToMuchIsUnpackedAsideToo) {
  const size_t large = 3 * kMostOnIo;
  const std::string packed = *pack(Coding::kGzip, std::string(large, 'x')), small = *pack(Coding::kGzip, std::string(1000, 'y'));
  auto peer = begin({{"grpc-encoding", "gzip"}});
  method_.may_end.release(3);
  send(peer, framed(packed, true) + framed(small, true) + framed(packed, true), true);
  EXPECT_EQ(peer.receive_answer(1).body, framed(std::to_string(large)) + framed("1000") + framed(std::to_string(large)));
  EXPECT_TRUE(serin::test::eventually([&] { return budget_->left() == kAll; }));
}

TEST_F(ReadAside, WhatUnpacksToTooMuchIsRefused) {
  auto peer = begin({{"grpc-encoding", "gzip"}});
  const std::string packed = *pack(Coding::kGzip, std::string(kAll + 1, 'x'));
  send(peer, framed(packed, true), true);
  const auto refused = peer.receive_answer(1);
  EXPECT_EQ(refused.head.at("grpc-status"), "8");
  EXPECT_THAT(refused.head.at("grpc-message"), testing::HasSubstr("once unpacked"));
  EXPECT_EQ(method_.given, 0);
  EXPECT_TRUE(serin::test::eventually([&] { return budget_->left() == kAll; }));
}

TEST_F(ReadAside, NothingOfACallThatHasEndedIsRead) {
  std::vector<test::H2Peer> busy;  // as many as there are threads for it
  for (int i = 0; i < 2; ++i) send(busy.emplace_back(begin()), framed("x"), false);
  ASSERT_TRUE(await(method_.begun, 2));
  auto gone = begin();
  send(gone, framed(std::string(kLarge, 'x')), false);
  ASSERT_TRUE(await(method_.given, 3));
  // The ping comes back once the server has seen what was sent before it.
  gone.send(test::frame(test::kReset, 0, 1, test::number(8)) + test::frame(test::kPing, 0, 0, "12345678"));
  ASSERT_TRUE(gone.receive(test::kPing, 0));
  auto late = begin({{"grpc-timeout", "1m"}});
  send(late, framed("x"), false);
  EXPECT_EQ(late.receive_answer(1).head.at("grpc-status"), "4") << "though it was not read yet";
  EXPECT_TRUE(others_are_answered());
  method_.may_end.release(2);
  ASSERT_TRUE(await(method_.done, method_.given));
  EXPECT_EQ(method_.begun, 2);
  EXPECT_EQ(method_.too_late, method_.given - 2);
  EXPECT_TRUE(serin::test::eventually([&] { return budget_->left() == kAll; }));
}

TEST_F(ReadAside, SeveralAreWrittenAtOnce) {
  auto peer = begin({}, "/write");
  send(peer, framed("x") + framed("x"), false);
  ASSERT_TRUE(await(method_.begun, 2));
  EXPECT_TRUE(others_are_answered());
  method_.may_end.release(2);
  std::string answers;
  while (answers.size() < 2 * framed("x").size()) answers += peer.receive(test::kData, 1).value().payload;
  EXPECT_EQ(answers, framed("x") + framed("x"));
}

TEST_F(ReadAside, NothingIsWrittenToACallThatHasEnded) {
  std::vector<test::H2Peer> busy;  // as many as there are threads for it
  for (int i = 0; i < 2; ++i) send(busy.emplace_back(begin()), framed("x"), false);
  ASSERT_TRUE(await(method_.begun, 2));
  auto late = begin({{"grpc-timeout", "200m"}}, "/write");
  send(late, framed("x") + framed("y"), false);
  EXPECT_EQ(late.receive_answer(1).head.at("grpc-status"), "4");
  EXPECT_EQ(method_.done, 0);
  method_.may_end.release(2);
  ASSERT_TRUE(await(method_.done, 4));
  EXPECT_EQ(method_.begun, 2);
  EXPECT_EQ(method_.too_late, 2);
}

TEST_F(ReadAside, ACallThatEndsWhileItIsReadIsForgottenAfterwards) {
  {
    auto gone = begin();
    send(gone, framed(std::string(kLarge, 'x')), true);
    ASSERT_TRUE(await(method_.begun, 1));
  }
  EXPECT_TRUE(others_are_answered());
  method_.may_end.release();
  ASSERT_TRUE(await(method_.done, 1));
  EXPECT_EQ(method_.too_late, 1);
  EXPECT_TRUE(serin::test::eventually([&] { return budget_->left() == kAll; }));
}

}  // namespace
}  // namespace serin::net
