// broken_answer_test.cc: an answer that breaks ends as a failure that says how much broke: the connection, or only the request on it.

#include <gmock/gmock.h>

#include <array>
#include <future>
#include <memory>
#include <string>

#include "runtime/net/upstream.h"
#include "tests/runtime/net/h2_peer.h"
#include "tests/runtime/net/raw_socket.h"

namespace serin::net {
namespace {

using test::frame;
using test::H2Peer;
using test::number;
using test::RawSocket;
using test::ScriptedServer;

/// The end of one answer.
struct Ended {
  bool failed = false, alone = false, excess = false;
  Code code = Code::kInternal;
};

class Reader final : public AnswerHandler {
 public:
  void on_answer(Head&) override {}
  std::span<char> body_room(std::optional<uint64_t>) override { return room_; }
  void body_filled(size_t) override {}
  void on_writable() override {}
  void on_excess() override { seen_.excess = true; }
  void on_progress(bool end) override {
    if (end) ended.set_value(seen_);
  }
  void on_failure(const Failure& failure) override {
    ended.set_value({.failed = true, .alone = failure.alone, .excess = seen_.excess, .code = failure.code});
  }
  std::promise<Ended> ended;

 private:
  std::array<char, 4096> room_;
  Ended seen_;
};

/// One GET on a fresh connection.
Ended ask(uint16_t port, const ClientOptions& options = {}) {
  Loops loops(1);
  Reader reader;
  const Headers headers;
  std::unique_ptr<Upstream> upstream;
  loops.post_and_wait(0, [&] {
    upstream = std::make_unique<Upstream>(loops.loop(0), Origin{"127.0.0.1", port}, options);
    ClientStream& stream = upstream->open(reader, std::chrono::steady_clock::now() + std::chrono::seconds(20));
    stream.begin_request({.method = "GET", .target = "/", .headers = headers, .length = 0});
    stream.write({}, /*last=*/true);
  });
  const Ended ended = reader.ended.get_future().get();
  loops.post_and_wait(0, [&] { upstream.reset(); });
  return ended;
}

Ended after(const std::string& bytes) {
  ScriptedServer server([&](RawSocket& socket) {
    socket.receive_some();
    socket.send(bytes);
  });
  return ask(server.port());
}

TEST(BrokenAnswer, CutOffIsTheConnections) {
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& bytes :
       {std::string(), std::string("HTTP/1.1 200 OK\r\nCont"), std::string("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"),
        chunked + "5\r\nab", chunked + "2\r\nab\r\n"}) {
    const Ended ended = after(bytes);
    EXPECT_TRUE(ended.failed) << bytes;
    EXPECT_EQ(ended.code, Code::kIo) << bytes;
    EXPECT_FALSE(ended.alone) << bytes;
  }
}

TEST(BrokenAnswer, MalformedIsTheServersWord) {
  for (const std::string& bytes : {std::string("I am not HTTP\r\n\r\n"), std::string("HTTP/1.1 banana\r\n\r\n"),
                                   std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab"),
                                   std::string("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")}) {
    const Ended ended = after(bytes);
    EXPECT_TRUE(ended.failed) << bytes;
    EXPECT_EQ(ended.code, Code::kCorrupt) << bytes;
  }
}

TEST(BrokenAnswer, LongerThanAnnouncedIsTold) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: ";
  EXPECT_TRUE(after(head + "2\r\n\r\nabc").excess);
  EXPECT_TRUE(after(head + "0\r\n\r\nabc").excess);
  EXPECT_TRUE(after(head + "100000\r\n\r\n" + std::string(100'001, 'a')).excess) << "of a body that is read past the buffer";
  for (const std::string& good : {head + "2\r\n\r\nab", head + "2\r\n\r\nab\r\n", head + "100000\r\n\r\n" + std::string(100'000, 'a'),
                                  std::string("HTTP/1.1 200 OK\r\n\r\nabc")}) {
    const Ended ended = after(good);
    EXPECT_FALSE(ended.failed || ended.excess) << good.substr(0, 60);
  }
}

/// closes: behind these frames. Otherwise the client ends the connection.
Ended after_frames(const std::string& frames, bool closes) {
  ScriptedServer server([&](RawSocket& socket) {
    H2Peer peer(std::move(socket));
    if (!peer.receive_preface()) return;
    peer.send(frame(test::kSettings, 0, 0));
    if (peer.receive(test::kHeaders)) peer.send(frames);
    if (!closes) peer.receive_goaway();
  });
  return ask(server.port(), {.http2 = true});
}

TEST(BrokenAnswer, ResetOfAStreamIsTheRequestsAlone) {
  const std::string head = frame(test::kHeaders, test::kEndHeaders, 1, test::block({{":status", "200"}}));
  const std::string reset = frame(test::kReset, 0, 1, number(NGHTTP2_INTERNAL_ERROR));
  for (const std::string& frames : {reset, head + reset, head + frame(test::kData, 0, 1, "ab") + reset}) {
    const Ended ended = after_frames(frames, /*closes=*/false);
    EXPECT_TRUE(ended.failed && ended.alone);
    EXPECT_EQ(ended.code, Code::kIo);
  }
  EXPECT_TRUE(after_frames(frame(test::kReset, 0, 1, number(NGHTTP2_REFUSED_STREAM)), /*closes=*/false).alone);
}

TEST(BrokenAnswer, EndOfAConnectionIsNotTheRequestsAlone) {
  const std::string goaway = frame(test::kGoaway, 0, 0, number(1) + number(NGHTTP2_INTERNAL_ERROR));
  const std::string reset = frame(test::kReset, 0, 1, number(NGHTTP2_INTERNAL_ERROR));
  const std::string no_stream = frame(test::kData, 0, 0, "x");
  for (const std::string& frames : {std::string(), goaway, goaway + reset, no_stream}) {
    const Ended ended = after_frames(frames, frames != no_stream);
    EXPECT_TRUE(ended.failed) << testing::PrintToString(frames);
    EXPECT_EQ(ended.code, Code::kIo) << testing::PrintToString(frames);
    EXPECT_FALSE(ended.alone) << testing::PrintToString(frames);
  }
}

}  // namespace
}  // namespace serin::net
