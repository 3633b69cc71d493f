// h2_server_test.cc: the server over HTTP/2: what it serves and how it ends. What it must survive is in h2_bad_input_test.cc.

#include <gmock/gmock.h>

#include "tests/runtime/net/h2_peer.h"
#include "tests/runtime/net/test_client.h"
#include "tests/runtime/net/test_server.h"

namespace serin::net {
namespace {

using namespace std::chrono_literals;
using test::body_of;
using test::Fields;
using test::frame;
using test::H2Peer;
using test::number;
using test::RawSocket;
using test::TestServer;
using testing::HasSubstr;

const Fields kGrpc = {{"content-type", "application/grpc"}, {"te", "trailers"}};

struct H2Server : TestServer {
  explicit H2Server(Limits limits = {}, size_t threads = 1) : TestServer(limits, threads, /*http2=*/true) {}
  explicit H2Server(ServerOptions options) : TestServer(1, std::move(options)) {}
};

TEST(H2Server, AnswersOnTheSamePortAsHttp1) {
  H2Server server;
  H2Peer peer = H2Peer::connect(server.port());
  const auto first = peer.ask(1, test::request("/echo?x=1"));
  EXPECT_EQ(first.head.at(":status"), "200");
  EXPECT_EQ(first.head.at("content-type"), "text/plain");
  EXPECT_EQ(first.body, "GET /echo?x=1|");
  EXPECT_EQ(peer.ask(3, test::request("/echo", {}, "POST"), "hello").body, "POST /echo|hello");
  EXPECT_EQ(server.request(0).peer, server.request(1).peer);
  EXPECT_EQ(server.request(0).headers.get("host"), "a");

  RawSocket http1 = server.connect();
  http1.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(body_of(http1.receive_answer()), "GET /echo|");
}

TEST(H2Server, KnowsThePrefaceByteByByte) {
  H2Server server;
  H2Peer peer(server.connect());
  for (const char c : std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + frame(test::kSettings, 0, 0)) ASSERT_TRUE(peer.send({&c, 1}));
  EXPECT_EQ(peer.ask(1, test::request("/echo")).body, "GET /echo|");
}

TEST(H2Server, SpeaksHttp1OnlyUnlessTold) {
  TestServer server;
  H2Peer peer = H2Peer::connect(server.port());
  EXPECT_THAT(peer.socket().receive_all(), HasSubstr("HTTP/1.1 505"));
}

TEST(H2Server, AnswersManyAtOnceInAnyOrder) {
  H2Server server;
  H2Peer peer = H2Peer::connect(server.port());
  peer.send_headers(1, test::request("/hold"));
  ASSERT_TRUE(server.await_held(1));
  for (uint32_t stream = 3; stream < 200; stream += 2) {
    const std::string path = "/echo?" + std::to_string(stream);
    ASSERT_EQ(peer.ask(stream, test::request(path)).body, "GET " + path + "|");
  }
  server.release();
  EXPECT_EQ(peer.receive_answer(1).body, "released");
}

TEST(H2Server, SendsNoMoreThanTheClientHasRoomFor) {
  H2Server server;
  H2Peer peer = H2Peer::connect(server.port(), number(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 2) + number(1000));
  peer.send_headers(1, test::request("/big"));
  std::string body;
  while (body.size() < 1000) body += peer.receive(test::kData, 1)->payload;
  EXPECT_EQ(body.size(), 1000u);
  EXPECT_EQ(peer.ask(3, test::request("/echo")).body, "GET /echo|");  // others go on
  peer.send(frame(test::kWindowUpdate, 0, 1, number(1 << 20)) + frame(test::kWindowUpdate, 0, 0, number(64 << 20)));
  while (body.size() < 1000 + (1 << 20)) body += peer.receive(test::kData, 1)->payload;
  EXPECT_EQ(body.size(), 1000u + (1 << 20));
  peer.send(frame(test::kWindowUpdate, 0, 1, number(64 << 20)));
  const auto rest = peer.receive_answer(1);
  EXPECT_EQ(body + rest.body, std::string(size_t{8} << 20, 'x'));
}

TEST(H2Server, TakesABodyLargerThanItsWindow) {
  H2Server server;
  test::TestClient client({.http2 = true});
  std::string large(size_t{20} << 20, 'x');
  large[12'345'678] = 'y';
  const auto response =
      client.send(server.port(), {.method = "PUT", .target = "/echo", .body = std::make_shared<const std::string>(large)});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "PUT /echo|" + large);
}

TEST(H2Server, SendsTrailers) {
  H2Server server;
  H2Peer peer = H2Peer::connect(server.port());
  const auto answer = peer.ask(1, test::request("/trailers", {}, "POST"), "x");
  EXPECT_EQ(answer.body, "POST /trailers|x");
  EXPECT_EQ(answer.trailers.at("grpc-status"), "0");
  EXPECT_FALSE(answer.head.contains("content-length"));
}

TEST(H2Server, AnswersHeadWithoutABody) {
  H2Server server;
  H2Peer peer = H2Peer::connect(server.port());
  const auto answer = peer.ask(1, test::request("/echo", {}, "HEAD"));
  EXPECT_EQ(answer.body, "");
  EXPECT_EQ(answer.head.at("content-length"), "11");
}

TEST(H2Server, JoinsACookieThatCameInPieces) {
  H2Server server;
  H2Peer peer = H2Peer::connect(server.port());
  peer.ask(1, test::request("/echo", {{"cookie", "a=1"}, {"x", "y"}, {"cookie", "b=2"}}));
  EXPECT_EQ(server.request(0).headers.get("cookie"), "a=1; b=2");
}

TEST(H2Server, SaysContinue) {
  H2Server server;
  H2Peer peer = H2Peer::connect(server.port());
  peer.send_headers(1, test::request("/echo", {{"expect", "100-continue"}}, "POST"), /*end=*/false);
  EXPECT_EQ(peer.receive(test::kHeaders, 1)->fields.at(":status"), "100");
  peer.send_data(1, "x", true);
  EXPECT_EQ(peer.receive_answer(1).body, "POST /echo|x");
}

TEST(H2Server, TellsTheHandlerThatAClientCancels) {
  H2Server server;
  H2Peer peer = H2Peer::connect(server.port());
  peer.send_headers(1, test::request("/hold"));
  peer.send_headers(3, test::request("/hold"));
  ASSERT_TRUE(server.await_held(2));
  peer.send(frame(test::kReset, 0, 1, number(NGHTTP2_CANCEL)));
  ASSERT_TRUE(server.await_cancelled(1));
  peer.socket().reset();
  EXPECT_TRUE(server.await_cancelled(2));
}

TEST(H2Server, RefusesInTheWordsOfWhoAsks) {
  H2Server server;
  H2Peer peer = H2Peer::connect(server.port());
  const auto plain = peer.ask(1, test::request("/a/../b"));
  EXPECT_EQ(plain.head.at(":status"), "400");
  EXPECT_THAT(plain.body, HasSubstr("\"error\""));
  const auto call = peer.ask(3, test::request("/a/../b", kGrpc, "POST"), "x");
  EXPECT_EQ(call.head.at(":status"), "200");
  EXPECT_EQ(call.head.at("content-type"), "application/grpc");
  EXPECT_EQ(call.head.at("grpc-status"), "3");
  EXPECT_NE(call.head.at("grpc-message"), "");
  EXPECT_EQ(peer.ask(5, test::request("/echo")).body, "GET /echo|");
}

TEST(H2Server, TellsAClientToStopSendingWhatNobodyReads) {
  H2Server server({.body_bytes = 1000});
  H2Peer peer = H2Peer::connect(server.port());
  peer.send_headers(1, test::request("/echo", {}, "POST"), /*end=*/false);
  peer.send_data(1, std::string(2000, 'x'), /*end=*/false);
  EXPECT_EQ(peer.receive_answer(1).head.at(":status"), "413");
  EXPECT_EQ(peer.receive(test::kReset, 1)->error(), uint32_t{NGHTTP2_NO_ERROR});
  EXPECT_EQ(peer.ask(3, test::request("/echo")).body, "GET /echo|");
}

TEST(H2Server, DrainsWithoutLosingARequest) {
  H2Server server;
  H2Peer peer = H2Peer::connect(server.port());
  peer.send_headers(1, test::request("/hold"));
  ASSERT_TRUE(server.await_held(1));
  std::thread drain([&] { EXPECT_TRUE(server.server().drain(test::kPatience)); });
  const auto notice = peer.receive(test::kGoaway);
  ASSERT_TRUE(notice);
  EXPECT_EQ(notice->payload.substr(0, 4), number(0x7FFFFFFF));
  EXPECT_EQ(peer.ask(3, test::request("/echo")).body, "GET /echo|");  // was on its way
  EXPECT_EQ(peer.receive(test::kGoaway)->payload.substr(0, 4), number(3));
  server.release();
  EXPECT_EQ(peer.receive_answer(1).body, "released");
  EXPECT_EQ(peer.receive(), std::nullopt);
  peer.socket().close();
  drain.join();
}

TEST(H2Server, LosesNothingWhereAConnectionIsOld) {
  H2Server server(ServerOptions{.connection_age = 100ms, .http2 = true});
  H2Peer peer = H2Peer::connect(server.port());
  peer.send_headers(1, test::request("/hold"));
  ASSERT_TRUE(server.await_held(1));
  EXPECT_EQ(peer.receive(test::kGoaway)->payload.substr(0, 4), number(0x7FFFFFFF));
  EXPECT_EQ(peer.ask(3, test::request("/echo")).body, "GET /echo|");  // was on its way
  EXPECT_EQ(peer.receive(test::kGoaway)->payload.substr(0, 4), number(3));
  server.release();
  EXPECT_EQ(peer.receive_answer(1).body, "released");
  EXPECT_EQ(peer.receive(), std::nullopt);
  H2Peer another = H2Peer::connect(server.port());
  EXPECT_EQ(another.ask(1, test::request("/echo")).body, "GET /echo|");
}

TEST(H2Server, CutsOffWhatOutlivesTheGraceOfAnOldConnection) {
  H2Server server(ServerOptions{.connection_age = 50ms, .connection_age_grace = 50ms, .http2 = true});
  H2Peer peer = H2Peer::connect(server.port());
  peer.send_headers(1, test::request("/hold"));
  ASSERT_TRUE(peer.receive(test::kGoaway));
  EXPECT_EQ(peer.receive(), std::nullopt);
  EXPECT_TRUE(server.await_cancelled(1));
}

TEST(H2Server, EndsIdleConnections) {
  H2Server server({.idle_timeout = 50ms});
  H2Peer peer = H2Peer::connect(server.port());
  EXPECT_EQ(peer.ask(1, test::request("/echo")).body, "GET /echo|");
  EXPECT_EQ(peer.receive_goaway(), uint32_t{NGHTTP2_NO_ERROR});
}

TEST(H2Server, ServesOnSeveralThreads) {
  H2Server server({}, /*threads=*/3);
  std::vector<H2Peer> peers;
  for (int i = 0; i < 9; ++i) peers.push_back(H2Peer::connect(server.port()));
  for (H2Peer& peer : peers) peer.send_headers(1, test::request("/hold"));
  ASSERT_TRUE(server.await_held(9));
  server.release();
  for (H2Peer& peer : peers) EXPECT_EQ(peer.receive_answer(1).body, "released");
}

}  // namespace
}  // namespace serin::net
