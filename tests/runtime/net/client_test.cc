// client_test.cc: both clients against servers that behave, servers that go away, and servers that answer what is not HTTP.

#include "runtime/net/client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "tests/runtime/net/test_client.h"
#include "tests/runtime/net/test_server.h"

namespace serin::net {
namespace {

using namespace std::chrono_literals;
using test::kPatience;
using test::RawSocket;
using test::ScriptedServer;
using test::TestClient;
using test::TestServer;
using test::TestSession;
using testing::HasSubstr;

/// Reads one request head, then sends `answer` and ends the connection.
ScriptedServer answering(std::string answer) {
  return ScriptedServer([answer = std::move(answer)](RawSocket& socket) {
    if (!socket.receive_answer().empty()) socket.send(answer);
  });
}

std::shared_ptr<const std::string> body(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

using Clients = testing::Types<TestClient, TestSession>;
template <class>
class AnyClient : public testing::Test {};
TYPED_TEST_SUITE(AnyClient, Clients);
template <class>
class BadAnswer : public testing::Test {};
TYPED_TEST_SUITE(BadAnswer, Clients);

TYPED_TEST(AnyClient, SendsAndKeepsTheConnection) {
  TestServer server;
  TypeParam client;
  for (int i = 0; i < 3; ++i) {
    const auto response = client.send(server.port(), {.method = "POST", .target = "/echo?a=b", .body = body("hello")});
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, "POST /echo?a=b|hello");
    EXPECT_EQ(response->headers.get("content-type"), "text/plain");
  }
  EXPECT_EQ(client.open_connections(), 1u);
  EXPECT_EQ(server.request(0).peer, server.request(2).peer);
}

TYPED_TEST(AnyClient, CarriesLargeBodiesBothWays) {
  TestServer server;
  TypeParam client;
  std::string large(size_t{20} << 20, 'x');
  large[12'345'678] = 'y';
  const auto response = client.send(server.port(), {.method = "PUT", .target = "/echo", .body = body(large)});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "PUT /echo|" + large);
}

TEST(Client, ResolvesNamesAndFetches) {
  TestServer server;
  const auto response = fetch({"localhost", server.port()}, {.target = "/echo"}, kPatience);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "GET /echo|");
  EXPECT_EQ(fetch({"no-such-host.invalid", 80}, {}, kPatience).error().code, Code::kUnavailable);
}

TYPED_TEST(AnyClient, HeadHasNoBody) {
  TestServer server;
  TypeParam client;
  for (int i = 0; i < 2; ++i) {
    const auto response = client.send(server.port(), {.method = "HEAD", .target = "/echo"});
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "");
  }
  EXPECT_EQ(client.open_connections(), 1u);
}

TYPED_TEST(AnyClient, NeverLetsAHeaderBecomeTwo) {
  TestServer server;
  TypeParam client;
  ASSERT_TRUE(client.send(server.port(), test::splitting_request()));
  EXPECT_EQ(server.request(0).headers.get("x-a"), "1  x-b: 2");
  EXPECT_FALSE(server.request(0).headers.has("x-b"));
  EXPECT_FALSE(server.request(0).headers.has("x-d"));
  EXPECT_EQ(client.send(server.port(), {.target = "/a b"}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(client.send(server.port(), {.method = "GET /x"}).error().code, Code::kInvalidArgument);
}

TYPED_TEST(AnyClient, RefusedConnection) {
  uint16_t port;
  {
    ScriptedServer gone([](RawSocket&) {});
    port = gone.port();
  }
  TypeParam client;
  const auto response = client.get(port);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_THAT(response.error().message, HasSubstr("127.0.0.1:" + std::to_string(port)));
  EXPECT_EQ(client.open_connections(), 0u);
}

TYPED_TEST(AnyClient, DeadlineOfAServerThatNeverAnswers) {
  TestServer server;
  TypeParam client;
  EXPECT_EQ(client.send(server.port(), {.target = "/hold"}, 50ms).error().code, Code::kDeadlineExceeded);
  EXPECT_TRUE(server.await_cancelled(1)) << "the connection is closed";
  EXPECT_EQ(client.open_connections(), 0u);
}

TEST(Client, CancelClosesTheConnectionAndForgetsTheCallback) {
  TestServer server;
  TestClient client;
  bool called = false;
  Call call;
  client.on_loop([&] {
    call =
        client.client().send({"127.0.0.1", server.port()}, {.target = "/hold"}, kPatience, [&](const Result<Response>&) { called = true; });
  });
  ASSERT_TRUE(server.await_held(1));
  client.on_loop([&] {
    call.cancel();
    call.cancel();
  });
  EXPECT_TRUE(server.await_cancelled(1));
  server.release();
  EXPECT_EQ(client.open_connections(), 0u);
  EXPECT_FALSE(called);
}

TYPED_TEST(AnyClient, RetriesOnceWhereAKeptConnectionWasClosed) {
  std::atomic<int> answered{0};
  ScriptedServer server([&](RawSocket& socket) {  // one answer per connection, though it says keep-alive
    if (socket.receive_answer().empty()) return;
    socket.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    if (++answered == 1) socket.receive_answer();  // sees the second request, and closes without a word
  });
  TypeParam client;
  ASSERT_TRUE(client.get(server.port()));
  const auto second = client.get(server.port());
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->body, "ok");
  EXPECT_EQ(server.connections(), 2);
}

TYPED_TEST(AnyClient, DoesNotRetryAFreshConnection) {
  ScriptedServer server([](RawSocket& socket) { socket.receive_answer(); });
  TypeParam client;
  EXPECT_EQ(client.get(server.port()).error().code, Code::kIo);
  EXPECT_EQ(server.connections(), 1);
}

TEST(Client, DestroyedInTheMiddleOfAnUploadLetsGoOfTheCallbackAtOnce) {
  std::promise<void> begun, over;
  ScriptedServer server([&, ended = over.get_future().share()](RawSocket& socket) {
    socket.receive_some();
    begun.set_value();
    ended.wait();  // and reads no more
  });
  Loops loops(1);
  std::unique_ptr<Client> client;
  std::weak_ptr<int> held;
  loops.post_and_wait(0, [&] {
    const auto owned = std::make_shared<int>();
    held = owned;
    client = std::make_unique<Client>(loops.loop(0), ClientOptions{});
    Outgoing upload{.method = "POST", .body = body(std::string(size_t{64} << 20, 'x'))};  // more than the kernel takes: the rest waits
    client->send({"127.0.0.1", server.port()}, std::move(upload), kPatience, [owned](const Result<Response>&) { FAIL(); });
  });
  EXPECT_EQ(begun.get_future().wait_for(kPatience), std::future_status::ready);
  loops.post_and_wait(0, [&] {
    client.reset();
    EXPECT_TRUE(held.expired());  // not when the operation is reported as aborted: what it refers to may be gone by then
  });
  over.set_value();
}

TEST(Client, MayBeDestroyedInACallback) {
  TestServer server;
  std::promise<void> done;
  Loops loops(1);
  auto client = std::make_unique<Client>(loops.loop(0), ClientOptions{});
  loops.post(0, [&] {
    client->send({"127.0.0.1", server.port()}, {.target = "/hold"}, kPatience, [](const Result<Response>&) { FAIL(); });
    client->send({"127.0.0.1", server.port()}, {.target = "/echo"}, kPatience, [&](const Result<Response>& response) {
      EXPECT_TRUE(response);
      client.reset();
      done.set_value();
    });
  });
  done.get_future().wait();
}

// ---- H26: answers that are not HTTP ----

TYPED_TEST(BadAnswer, H26_MalformedHeads) {
  TypeParam client;
  for (const std::string answer :
       {"HTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 99 Low\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/1.1200 OK\r\n\r\n", "200 OK\r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 200 OK\ncontent-length: 0\n\n",
        "HTTP/1.1 200 OK\r\ncontent-length : 0\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ncontent-length: 0x1\r\n\r\na",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n+1\r\na\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
        "\x16\x03\x01 binary\r\n\r\n"}) {
    ScriptedServer server = answering(answer);
    const auto response = client.get(server.port());
    ASSERT_FALSE(response) << answer;
    EXPECT_EQ(response.error().code, Code::kCorrupt) << answer << ": " << response.error().message;
  }
  EXPECT_EQ(client.open_connections(), 0u);
}

TYPED_TEST(BadAnswer, H26_EarlyClose) {
  TypeParam client;
  for (const std::string answer : {"", "HTTP/1.1 200 OK\r\ncontent-le", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc",
                                   "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabc"}) {
    ScriptedServer server = answering(answer);
    EXPECT_EQ(client.get(server.port()).error().code, Code::kIo) << answer;
  }
}

TYPED_TEST(BadAnswer, H26_MoreBytesThanTheLengthSays) {
  ScriptedServer server([](RawSocket& socket) {
    while (!socket.receive_answer().empty())
      socket.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil");
  });
  TypeParam client;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(client.get(server.port())->body, "ok");
  EXPECT_EQ(server.connections(), 2) << "no second request on that connection";
}

TYPED_TEST(BadAnswer, H26_InterimAnswers) {
  TypeParam client;
  ScriptedServer hints =
      answering("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  const auto response = client.get(hints.port());
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_FALSE(response->headers.has("link"));
  std::string flood;
  for (int i = 0; i < 1000; ++i) flood += "HTTP/1.1 102 Processing\r\n\r\n";
  ScriptedServer flooding = answering(flood + "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  EXPECT_EQ(client.get(flooding.port()).error().code, Code::kCorrupt);
  ScriptedServer switching = answering("HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\n\r\n");
  EXPECT_EQ(client.get(switching.port()).error().code, Code::kCorrupt);
}

TYPED_TEST(BadAnswer, H26_TooLarge) {
  TypeParam client({.response_bytes = 1000});
  ScriptedServer headers = answering("HTTP/1.1 200 OK\r\nx: " + std::string(1'000'000, 'x') + "\r\n\r\n");
  EXPECT_EQ(client.get(headers.port()).error().code, Code::kCorrupt);
  for (const std::string& head :
       {"content-length: 1001\r\n\r\n" + std::string(1001, 'x'), "transfer-encoding: chunked\r\n\r\n3e9\r\n" + std::string(1001, 'x'),
        "\r\n" + std::string(1'000'000, 'x')}) {
    ScriptedServer server = answering("HTTP/1.1 200 OK\r\n" + head);
    EXPECT_EQ(client.get(server.port()).error().code, Code::kTooLarge) << head.substr(0, 40);
  }
}

TYPED_TEST(BadAnswer, H26_BodyUntilTheConnectionEnds) {
  ScriptedServer server = answering("HTTP/1.0 200 OK\r\n\r\nall of it");
  TypeParam client;
  const auto response = client.get(server.port());
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "all of it");
  EXPECT_EQ(client.open_connections(), 0u);
}

TYPED_TEST(BadAnswer, H26_ChunkedAnswersAreDecoded) {
  ScriptedServer server =
      answering("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n3;x=y\r\n !!\r\n0\r\nx-trailer: 1\r\n\r\n");
  TypeParam client;
  const auto response = client.get(server.port());
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "ok !!");
  EXPECT_FALSE(response->headers.has("transfer-encoding"));
}

TYPED_TEST(BadAnswer, H26_AnswerBeforeTheRequestEnds) {
  ScriptedServer server([](RawSocket& socket) {
    socket.receive_some();
    socket.send("HTTP/1.1 413 Content Too Large\r\ncontent-length: 2\r\n\r\nno");
    socket.receive_all();
  });
  TypeParam client;
  const auto response = client.send(server.port(), {.method = "POST", .target = "/", .body = body(std::string(size_t{64} << 20, 'x'))});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 413);
  if constexpr (std::is_same_v<TypeParam, TestClient>) {
    EXPECT_EQ(client.open_connections(), 0u) << "a Session sends all before it reads";
  }
}

TYPED_TEST(AnyClient, H17_AWantOfDescriptorsIsNotTheServersFault) {
  TestServer server;
  TypeParam client;
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  none.rlim_cur = 3;
  setrlimit(RLIMIT_NOFILE, &none);
  const auto response = client.get(server.port());
  setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kOverloaded);
  EXPECT_THAT(response.error().message, HasSubstr("Too many open files"));
  EXPECT_TRUE(client.get(server.port()));
}

TEST(Session, AsksElsewhereAfterUnaskedBytesOnAKeptConnection) {
  std::promise<void> sent;
  ScriptedServer server([&](RawSocket& socket) {
    if (socket.receive_answer().empty()) return;
    socket.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    if (server.connections() > 1) return;
    socket.send("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil");
    sent.set_value();
    socket.receive_all();
  });
  TestSession client;
  EXPECT_EQ(client.get(server.port())->body, "ok");
  sent.get_future().wait();
  EXPECT_EQ(client.get(server.port())->body, "ok");
  EXPECT_EQ(server.connections(), 2);
}

TEST(Session, HandsOverAnAnswerWhileItArrives) {
  std::promise<void> seen;
  ScriptedServer server([&](RawSocket& socket) {
    socket.receive_answer();
    socket.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nfirst\n\r\n");
    EXPECT_EQ(seen.get_future().wait_for(kPatience), std::future_status::ready) << "before the answer ends";
    socket.send("7\r\nsecond\n\r\n0\r\n\r\n");
  });
  Session session;
  std::string all;
  const auto done = session.receive({"127.0.0.1", server.port()}, {.target = "/watch"}, kPatience, [&](int status, std::string_view bytes) {
    EXPECT_EQ(status, 200);
    if (std::exchange(all, all + std::string(bytes)).empty()) seen.set_value();
  });
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_EQ(all, "first\nsecond\n");
}

TEST(Session, GivesUpAnAnswerInWhichNothingComesAnyMore) {
  std::promise<void> over;
  ScriptedServer server([&](RawSocket& socket) {
    socket.receive_answer();
    socket.send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf!");
    over.get_future().wait();
  });
  Session session({.silence_timeout = 500ms});
  std::string seen;
  const auto done = session.receive({"127.0.0.1", server.port()}, {}, kPatience, [&](int, std::string_view bytes) { seen.append(bytes); });
  over.set_value();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(seen, "half!");
}

TEST(Session, StopsWhatWaits) {
  TestServer server;
  TestSession client;
  auto waiting = std::async(std::launch::async, [&] { return client.get(server.port(), "/hold"); });
  ASSERT_TRUE(server.await_held(1));
  client.session().stop();
  EXPECT_EQ(waiting.get().error().code, Code::kCancelled);
  EXPECT_TRUE(server.await_cancelled(1)) << "the connection is closed";
  EXPECT_EQ(client.get(server.port()).error().code, Code::kCancelled);
  EXPECT_EQ(client.open_connections(), 0u);
}

TEST(Session, IsUsedByManyThreads) {
  TestServer server;
  TestSession client;
  std::vector<std::future<void>> threads;
  for (int i = 0; i < 8; ++i) {
    threads.push_back(std::async(std::launch::async, [&, i] {
      for (int k = 0; k < 20; ++k) EXPECT_EQ(client.get(server.port(), fmt::format("/echo?{}", i))->body, fmt::format("GET /echo?{}|", i));
    }));
  }
  for (auto& thread : threads) thread.get();
  EXPECT_LE(client.open_connections(), 8u);
}

TEST(Client, UnaskedBytesOnAKeptConnectionCloseIt) {
  std::promise<void> seen;
  ScriptedServer server([&](RawSocket& socket) {
    socket.receive_answer();
    socket.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    socket.send("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil");
    socket.receive_all();  // until the client has closed
    seen.set_value();
  });
  TestClient client;
  EXPECT_EQ(client.get(server.port())->body, "");
  EXPECT_EQ(seen.get_future().wait_for(kPatience), std::future_status::ready);
}

}  // namespace
}  // namespace serin::net
