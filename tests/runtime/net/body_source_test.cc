// body_source_test.cc: answers without an end: their pieces, their bounds, and what becomes of them when the client goes.

#include "runtime/net/body_source.h"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "runtime/net/server.h"
#include "tests/runtime/base/eventually.h"
#include "tests/runtime/net/raw_socket.h"

namespace serin::net {
namespace {

using serin::test::eventually;
using test::RawSocket;
using testing::EndsWith;
using testing::HasSubstr;

/// What the test and the source, which is the server's, both know.
struct Script {
  std::mutex mutex;
  std::string waiting;  // the next piece
  bool ended = false;
  std::function<void()> more;
  std::atomic<int> begun{0}, pulls{0}, gone{0};
  std::atomic<bool> endless{false};  // always another 16 KiB

  void say(const std::string& piece) {
    const std::lock_guard lock(mutex);
    waiting += piece;
    more();
  }
  void end() {
    const std::lock_guard lock(mutex);
    ended = true;
    more();
  }
};

class ScriptedSource final : public BodySource {
 public:
  explicit ScriptedSource(std::shared_ptr<Script> script) : script_(std::move(script)) {}
  ~ScriptedSource() override { ++script_->gone; }
  void begin(std::function<void()> more) override {
    const std::lock_guard lock(script_->mutex);
    script_->more = std::move(more);
    ++script_->begun;
  }
  std::optional<std::string> pull() override {
    ++script_->pulls;
    if (script_->endless) return std::string(size_t{16} << 10, 'x');
    const std::lock_guard lock(script_->mutex);
    if (script_->waiting.empty() && script_->ended) return std::nullopt;
    return std::exchange(script_->waiting, "");
  }

 private:
  const std::shared_ptr<Script> script_;
};

class BodySourceTest : public ::testing::Test {
 protected:
  RawSocket ask(std::string_view request, int receive_buffer = 0) {
    RawSocket client = RawSocket::connect(server_->port(), receive_buffer);
    client.send(request);
    return client;
  }
  static std::string receive_until(RawSocket& client, std::string_view text) {
    std::string all;
    while (all.find(text) == std::string::npos && client.receive_some()) all += client.take();
    return all;
  }

  Limits limits_{.write_timeout = std::chrono::milliseconds(500)};
  std::shared_ptr<Script> script_ = std::make_shared<Script>();
  Loops loops_{1};
  std::unique_ptr<Server> server_ =
      *Server::start(loops_, {.name = "test", .limits = limits_}, [this](const Request& request, Responder to) {
        Response response;
        if (request.path == "/feed")
          response.source = std::make_shared<ScriptedSource>(script_);
        else
          response.body = "whole";
        to.send(std::move(response));
      });
};

constexpr std::string_view kFeed = "GET /feed HTTP/1.1\r\nHost: a\r\n\r\n", kWhole = "GET /whole HTTP/1.1\r\nHost: a\r\n\r\n";

TEST_F(BodySourceTest, PiecesGoOutAsTheyComeAndTheConnectionServesOn) {
  RawSocket client = ask(kFeed);
  ASSERT_TRUE(eventually([&] { return script_->begun == 1; }));
  script_->say("first");
  EXPECT_THAT(receive_until(client, "first\r\n"), HasSubstr("transfer-encoding: chunked\r\n"));
  script_->say("second");
  EXPECT_EQ(receive_until(client, "second\r\n"), "6\r\nsecond\r\n");
  script_->end();
  EXPECT_EQ(receive_until(client, "0\r\n\r\n"), "0\r\n\r\n");
  client.send(kWhole);
  EXPECT_THAT(client.receive_answer(), EndsWith("whole"));
  EXPECT_TRUE(eventually([&] { return script_->gone == 1; }));
  script_->say("to nobody");
  client.send(kWhole);
  EXPECT_THAT(client.receive_answer(), EndsWith("whole"));
}

TEST_F(BodySourceTest, HeadHasNoBodyAndBeginsNothing) {
  RawSocket client = ask("HEAD /feed HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(client.receive_answer(/*head_only=*/true), HasSubstr("200 OK"));
  client.send(kWhole);
  EXPECT_THAT(client.receive_answer(), EndsWith("whole"));
  EXPECT_EQ(script_->begun, 0);
}

TEST_F(BodySourceTest, ToAnOldClientItsEndIsTheConnections) {
  RawSocket client = ask("GET /feed HTTP/1.0\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return script_->begun == 1; }));
  script_->say("all there is");
  script_->end();
  EXPECT_THAT(client.receive_all(), EndsWith("\r\n\r\nall there is"));
}

TEST_F(BodySourceTest, WhoGoesTakesTheSourceAlong) {
  {
    const RawSocket client = ask(kFeed);
    ASSERT_TRUE(eventually([&] { return script_->begun == 1; }));
  }
  EXPECT_TRUE(eventually([&] { return script_->gone == 1; }));
  script_->say("to nobody");
}

TEST_F(BodySourceTest, H16AReaderThatStopsIsAskedForNothingMoreAndClosed) {
  script_->endless = true;
  const RawSocket client = ask(kFeed, /*receive_buffer=*/4096);
  EXPECT_TRUE(eventually([&] { return script_->gone == 1; })) << "the write timeout ends it";
  EXPECT_LT(script_->pulls, 1000) << "16 MiB: the kernel's buffers and ours, not what an endless source has to say";
}

TEST_F(BodySourceTest, AServerThatStopsLetsSourcesGo) {
  const RawSocket client = ask(kFeed);
  ASSERT_TRUE(eventually([&] { return script_->begun == 1; }));
  server_.reset();
  EXPECT_EQ(script_->gone, 1);
}

}  // namespace
}  // namespace serin::net
