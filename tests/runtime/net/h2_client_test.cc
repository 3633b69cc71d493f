// h2_client_test.cc: the client over HTTP/2: against our own server, and against servers that go away, refuse, or speak something else.

#include <gmock/gmock.h>

#include "tests/runtime/net/h2_peer.h"
#include "tests/runtime/net/test_client.h"
#include "tests/runtime/net/test_server.h"

namespace serin::net {
namespace {

using namespace std::chrono_literals;
using test::block;
using test::frame;
using test::H2Peer;
using test::kPatience;
using test::number;
using test::RawSocket;
using test::ScriptedServer;
using test::TestServer;
using testing::HasSubstr;

struct TestClient : test::TestClient {
  explicit TestClient(ClientOptions options = {}) : test::TestClient(over_http2(options)) {}
  static ClientOptions over_http2(ClientOptions options) {
    options.http2 = true;
    return options;
  }
  /// `count` requests at once; their answers.
  std::vector<Result<Response>> send_many(uint16_t port, size_t count, const std::string& target) {
    std::vector<std::promise<Result<Response>>> promises(count);
    on_loop([&] {
      for (auto& promise : promises)
        client().send({"127.0.0.1", port}, {.target = target}, kPatience,
                      [&promise](Result<Response> response) { promise.set_value(std::move(response)); });
    });
    std::vector<Result<Response>> answers;
    for (auto& promise : promises) answers.push_back(promise.get_future().get());
    return answers;
  }
};

const std::string kOk = frame(test::kHeaders, test::kEndHeaders | test::kEndStream, 1, block({{":status", "200"}}));

/// Serves each connection as a server of HTTP/2 that has said hello and read the first request.
ScriptedServer answering(std::function<void(H2Peer&)> script) {
  return ScriptedServer([script = std::move(script)](RawSocket& socket) {
    H2Peer peer(std::move(socket));
    if (!peer.receive_preface()) return;
    peer.send(frame(test::kSettings, 0, 0));
    if (peer.receive(test::kHeaders)) script(peer);
  });
}

TEST(H2Client, SendsAndKeepsTheConnection) {
  TestServer server({}, 1, /*http2=*/true);
  TestClient client;
  for (int i = 0; i < 3; ++i) {
    const auto response =
        client.send(server.port(), {.method = "POST", .target = "/trailers?a=b", .body = std::make_shared<const std::string>("hello")});
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "POST /trailers?a=b|hello");
    EXPECT_EQ(response->trailers.get("grpc-status"), "0");
  }
  EXPECT_EQ(server.request(0).peer, server.request(2).peer);
  EXPECT_EQ(server.request(0).headers.get("host"), "127.0.0.1:" + std::to_string(server.port()));
}

TEST(H2Client, AsksManyAtOnceOnFewConnections) {
  TestServer server({}, 1, /*http2=*/true);
  TestClient client;
  for (const auto& response : client.send_many(server.port(), 1000, "/echo")) {
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "GET /echo|");
  }
  EXPECT_LE(client.open_connections(), 10u);
}

TEST(H2Client, CarriesLargeBodiesBothWaysAtOnce) {
  TestServer server({}, 1, /*http2=*/true);
  TestClient client;
  for (const auto& response : client.send_many(server.port(), 20, "/big")) {
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body.size(), size_t{8} << 20);
  }
}

TEST(H2Client, NeverLetsAHeaderBecomeTwo) {
  TestServer server({}, 1, /*http2=*/true);
  TestClient client;
  ASSERT_TRUE(client.send(server.port(), test::splitting_request()));
  EXPECT_EQ(server.request(0).headers.get("x-a"), "1  x-b: 2");
  EXPECT_FALSE(server.request(0).headers.has("x-d"));
}

TEST(H2Client, SaysWhenAServerSpeaksSomethingElse) {
  TestServer http1;
  TestClient client;
  const auto response = client.send(http1.port(), {.target = "/echo"});
  ASSERT_FALSE(response);
  EXPECT_THAT(response.error().code, testing::AnyOf(Code::kCorrupt, Code::kIo)) << response.error().message;
}

TEST(H2Client, SaysWhyAConnectionCannotBeMade) {
  const uint16_t port = ScriptedServer([](RawSocket&) {}).port();
  TestClient client;
  const auto response = client.send(port, {});
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_THAT(response.error().message, HasSubstr("cannot connect: Connection refused"));
}

TEST(H2Client, AsksAgainWhatAServerHasNotLookedAt) {
  const std::string goes = frame(test::kGoaway, 0, 0, number(0) + number(NGHTTP2_NO_ERROR));
  const std::string refuses = frame(test::kReset, 0, 1, number(NGHTTP2_REFUSED_STREAM)) + goes;
  for (const std::string& first : {goes, refuses}) {
    std::atomic<int> round = 0;
    auto server = answering([&](H2Peer& peer) {
      peer.send(++round == 1 ? first : kOk);
      peer.receive_goaway();
    });
    TestClient client;
    const auto response = client.send(server.port(), {});
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(server.connections(), 2);
  }
}

TEST(H2Client, EndsWhatItBeganOnAConnectionThatIsToGo) {
  auto server = answering([](H2Peer& peer) {
    peer.send(frame(test::kGoaway, 0, 0, number(1) + number(NGHTTP2_NO_ERROR)));
    peer.send(kOk);
    peer.receive_goaway();
  });
  TestClient client;
  EXPECT_EQ(client.send(server.port(), {}).value().status, 200);
  EXPECT_EQ(client.send(server.port(), {}).value().status, 200);
  EXPECT_EQ(server.connections(), 2);
}

TEST(H2Client, FailsInTheMiddleOfAnAnswer) {
  auto server = answering([](H2Peer& peer) {
    peer.send(frame(test::kHeaders, test::kEndHeaders, 1, block({{":status", "200"}})) + frame(test::kData, 0, 1, "half"));
    peer.socket().half_close();
    peer.receive_goaway();
  });
  TestClient client;
  const auto response = client.send(server.port(), {});
  EXPECT_EQ(response.error().code, Code::kIo);
  EXPECT_THAT(response.error().message, HasSubstr("in the middle of the answer"));
}

TEST(H2Client, SaysWhyTheServerEndedARequest) {
  auto server = answering([](H2Peer& peer) {
    peer.send(frame(test::kReset, 0, 1, number(NGHTTP2_INTERNAL_ERROR)));
    peer.receive_goaway();
  });
  TestClient client;
  EXPECT_THAT(client.send(server.port(), {}).error().message, HasSubstr("INTERNAL_ERROR"));
}

TEST(H2Client, H26_AnswersThatAreNone) {
  const auto head = [](const test::Fields& fields, bool end = true) {
    return frame(test::kHeaders, test::kEndHeaders | (end ? test::kEndStream : 0), 1, block(fields));
  };
  const test::Fields ok = {{":status", "200"}};
  std::string interim;
  for (int i = 0; i < 20; ++i) interim += head({{":status", "103"}}, false);
  const std::vector<std::string> bad = {
      head({{":status", "20"}}),
      head({{":status", "2000"}}),
      head({{"x", "y"}}),
      head({{":status", "200"}, {":status", "200"}}),
      head({{"x", "y"}, {":status", "200"}}),
      head({{":status", "200"}, {"connection", "close"}}),
      head({{":status", "200"}, {"x", "a\r\nb"}}),
      head({{":status", "200"}, {"content-length", "5"}}),
      head({{":status", "200"}, {"content-length", "5"}}, false) + frame(test::kData, test::kEndStream, 1, "x"),
      head(ok, false) + head({{":status", "200"}}),
      frame(test::kData, 0, 1, "x"),
      frame(test::kPushPromise, test::kEndHeaders, 1, number(2) + block(test::request("/"))),
      frame(test::kHeaders, test::kEndHeaders, 1, "\xFF\xFF\xFF\xFF\xFF"),
      interim,
      head({{":status", "200"}, {"x", std::string(15'000, 'a')}}, false) + frame(test::kData, test::kEndStream, 1, std::string(20, 'x')),
  };
  for (const std::string& bytes : bad) {
    auto server = answering([&bytes](H2Peer& peer) {
      peer.send(bytes);
      peer.receive_goaway();
    });
    TestClient client({.response_bytes = 10});
    const auto response = client.send(server.port(), {});
    ASSERT_FALSE(response) << testing::PrintToString(bytes);
    EXPECT_THAT(response.error().code, testing::AnyOf(Code::kCorrupt, Code::kIo, Code::kTooLarge)) << testing::PrintToString(bytes);
    client.on_loop([] {});
  }
}

TEST(H2Client, GivesUpAtTheDeadlineAndDoubtsTheConnection) {
  auto server = answering([](H2Peer& peer) {
    peer.send(kOk);
    peer.receive_goaway();  // says nothing more until the client goes
  });
  TestClient client;
  EXPECT_EQ(client.send(server.port(), {}).value().status, 200);
  EXPECT_EQ(client.send(server.port(), {}, 50ms).error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(client.send(server.port(), {}).value().status, 200);
  EXPECT_EQ(server.connections(), 2);
}

TEST(H2Client, TellsTheServerThatNobodyWaits) {
  TestServer server({}, 1, /*http2=*/true);
  TestClient client;
  Call call;
  client.on_loop([&] {
    call = client.client().send({"127.0.0.1", server.port()}, {.target = "/hold"}, kPatience, [](const Result<Response>&) { FAIL(); });
  });
  ASSERT_TRUE(server.await_held(1));
  client.on_loop([&] { call.cancel(); });
  EXPECT_TRUE(server.await_cancelled(1));
  EXPECT_EQ(client.get(server.port())->body, "GET /echo|");
  EXPECT_EQ(client.open_connections(), 1u);
}

TEST(H2Client, LetsAServerDrain) {
  auto server = std::make_unique<TestServer>(Limits{}, 1, /*http2=*/true);
  TestClient client;
  EXPECT_EQ(client.get(server->port())->body, "GET /echo|");
  EXPECT_TRUE(server->server().drain(kPatience));
  while (client.open_connections() > 0) std::this_thread::sleep_for(1ms);
}

}  // namespace
}  // namespace serin::net
