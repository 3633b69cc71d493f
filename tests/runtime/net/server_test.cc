// server_test.cc: the server seen from a raw socket: what it serves, in which order, and what it refuses. Rows of bad input by number (H1 ...).

#include "runtime/net/server.h"

#include <gmock/gmock.h>

#include <future>

#include "tests/runtime/net/test_server.h"

namespace serin::net {
namespace {

using test::body_of;
using test::RawSocket;
using test::status_of;
using test::TestServer;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view kClose = "Host: a\r\nConnection: close\r\n\r\n";

/// One bad message: refused with one of the statuses, closed, and never seen by the handler.
void expect_refused(TestServer& server, std::string_view message, std::initializer_list<int> statuses) {
  const std::string answer = server.exchange(message);
  EXPECT_THAT(statuses, testing::Contains(status_of(answer))) << message << "\n-> " << answer;
  EXPECT_THAT(answer, HasSubstr("connection: close\r\n")) << message;
  EXPECT_THAT(answer, testing::EndsWith("\"}")) << message;
  EXPECT_THAT(answer, Not(HasSubstr("}HTTP/1.1"))) << "a second answer to " << message;
  EXPECT_EQ(server.seen(), 0u) << message;
}

std::string posted(std::string_view headers, std::string_view body) {
  return "POST /echo HTTP/1.1\r\nHost: a\r\n" + std::string(headers) + "\r\n" + std::string(body);
}

// ---- what it serves ----

TEST(Server, AnswersAndKeepsTheConnection) {
  TestServer server;
  RawSocket client = server.connect();
  client.send("GET /echo?x=1 HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::string answer = client.receive_answer();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("connection:")));
  EXPECT_EQ(body_of(answer), "GET /echo?x=1|");
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_EQ(body_of(client.receive_answer()), "POST /echo|hello");
}

TEST(Server, AnswersPipelinedRequestsInOrder) {
  TestServer server;
  RawSocket client = server.connect();
  client.send(
      "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n"
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
      "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  ASSERT_TRUE(server.await_held(1));
  server.release();
  EXPECT_EQ(body_of(client.receive_answer()), "released");
  EXPECT_EQ(body_of(client.receive_answer()), "POST /echo|abc");
  EXPECT_EQ(body_of(client.receive_answer()), "GET /echo|");
  EXPECT_TRUE(client.at_end());
}

TEST(Server, TakesAThousandPipelinedRequestsWithoutRecursion) {
  TestServer server;
  RawSocket client = server.connect();
  std::string all;
  for (int i = 0; i < 1000; ++i) all += "GET /echo?" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\n\r\n";
  std::thread sender([&] { client.send(all); });
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(body_of(client.receive_answer()), "GET /echo?" + std::to_string(i) + "|");
  sender.join();
}

TEST(Server, ReadsABodyLargerThanAnyBuffer) {
  TestServer server;
  std::string body(3'000'000, 'x');
  for (size_t i = 0; i < body.size(); i += 1000) body[i] = static_cast<char>('a' + i / 1000 % 26);
  const std::string answer = server.exchange(posted("Connection: close\r\nContent-Length: 3000000\r\n", body));
  EXPECT_EQ(body_of(answer), "POST /echo|" + body);
}

TEST(Server, ServesOnSeveralThreads) {
  TestServer server({}, /*threads=*/3);
  std::vector<RawSocket> clients;
  for (int i = 0; i < 9; ++i) clients.push_back(server.connect());
  for (RawSocket& client : clients) client.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(server.await_held(9));
  server.release();
  for (RawSocket& client : clients) EXPECT_EQ(body_of(client.receive_answer()), "released");
}

TEST(Server, FollowsTheKeepAliveRulesOfHttp10) {
  TestServer server;
  EXPECT_THAT(server.exchange("GET /echo HTTP/1.0\r\n\r\n"), HasSubstr("connection: close\r\n"));
  RawSocket client = server.connect();
  client.send("GET /echo HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
  EXPECT_THAT(client.receive_answer(), HasSubstr("connection: keep-alive\r\n"));
  client.send("GET /echo HTTP/1.0\r\n\r\n");
  EXPECT_EQ(body_of(client.receive_all()), "GET /echo|");
}

TEST(Server, AnswersForAHandlerThatDropsOrThrows) {
  TestServer server;
  RawSocket client = server.connect();
  client.send("GET /drop HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(status_of(client.receive_answer()), 500);
  client.send("GET /throw HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(status_of(client.receive_answer()), 500);
}

TEST(Server, PassesTargetHeadersAndPeerOn) {
  TestServer server;
  server.exchange("GET http://a/x%20y?q=%20 HTTP/1.1\r\nHost: a\r\nX-One:  1 \r\nConnection: close, x-two\r\nX-Two: 2\r\n\r\n");
  const Request& request = server.request(0);
  EXPECT_EQ(request.target, "/x%20y?q=%20");
  EXPECT_EQ(request.path, "/x y");
  EXPECT_EQ(request.query, "q=%20");
  EXPECT_EQ(request.headers.get("x-one"), "1");
  EXPECT_FALSE(request.headers.has("x-two"));
  EXPECT_FALSE(request.headers.has("connection"));
  EXPECT_THAT(request.peer, StartsWith("127.0.0.1:"));
}

TEST(Server, SaysWhatIsWrongWithAnAddress) {
  Loops loops(1);
  const auto nothing = [](Request, Responder) {};
  EXPECT_EQ(Server::start(loops, {.name = "x", .address = "no.where"}, nothing).error().code, Code::kInvalidArgument);
  const auto first = Server::start(loops, {.name = "x"}, nothing);
  const auto second = Server::start(loops, {.name = "x", .port = (*first)->port()}, nothing);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kAlreadyExists);
  EXPECT_THAT(second.error().message, HasSubstr("127.0.0.1:" + std::to_string((*first)->port())));
}

// ---- drain ----

TEST(Server, DrainsWithARequestInProgress) {
  TestServer server;
  RawSocket idle = server.connect();
  idle.send("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_EQ(status_of(idle.receive_answer()), 200);
  RawSocket busy = server.connect();
  busy.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(server.await_held(1));

  EXPECT_FALSE(server.server().drain(std::chrono::milliseconds(1))) << "a request is still in progress";
  EXPECT_TRUE(idle.at_end());
  EXPECT_FALSE(server.connect().connected()) << "nobody listens any more";
  server.release();
  const std::string answer = busy.receive_all();
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_THAT(answer, HasSubstr("connection: close\r\n"));
  busy.close();
  EXPECT_TRUE(server.server().drain(std::chrono::milliseconds(test::kPatienceMs)));
}

// ---- bad input ----

TEST(BadInput, H1_BothContentLengthAndTransferEncoding) {
  TestServer server;
  expect_refused(server, posted("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\nGET /echo HTTP/1.1\r\nHost: a\r\n\r\n"),
                 {400});
  expect_refused(server, posted("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "0\r\n\r\n"), {400});
}

TEST(BadInput, H2_TwoContentLengths) {
  TestServer server;
  expect_refused(server, posted("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd"), {400});
  expect_refused(server, posted("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"), {400});
}

TEST(BadInput, H3_ContentLengthThatIsNoNumber) {
  TestServer server;
  for (const std::string value :
       {"+5", "-1", "0x10", "1_0", "5,5", "5, 5", "", "5 5", "5.0", "18446744073709551616", "99999999999999999999999"}) {
    expect_refused(server, posted("Content-Length: " + value + "\r\n", "abcde"), {400});
  }
}

TEST(BadInput, H4_TransferEncodingOtherThanChunkedOnce) {
  TestServer server;
  for (const std::string value :
       {"chunked, chunked", ",chunked", "xchunked", "identity", "gzip, chunked", "chunked;q=1", "", "\"chunked\""}) {
    expect_refused(server, posted("Transfer-Encoding: " + value + "\r\n", "0\r\n\r\n"), {400, 501});
  }
  expect_refused(server, posted("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), {400});
  expect_refused(server, "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400, 501});
}

TEST(BadInput, H5_ChunkSizeThatIsNoHexNumber) {
  TestServer server;
  for (const std::string size : {"0x2e", "+5", "-1", "0_2e", "", " 5", "5 ", "00000000000000005", "fffffffffffffffff", "g", "5\t"}) {
    expect_refused(server, posted("Transfer-Encoding: chunked\r\n", size + "\r\nabcde\r\n0\r\n\r\n"), {400});
  }
  expect_refused(server, posted("Transfer-Encoding: chunked\r\n", "ffffffffffffffff\r\nabc"), {413});
}

TEST(BadInput, H6_LineEndsOtherThanCrLf) {
  TestServer server;
  expect_refused(server, "GET /echo HTTP/1.1\nHost: a\n\n", {400});
  expect_refused(server, "GET /echo HTTP/1.1\r\nHost: a\n\r\n", {400});
  expect_refused(server, "GET /echo HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", {400});
  expect_refused(server, "GET /echo HTTP/1.1\r\nHost: a\r\n\rX: b\r\n\r\n", {400});
  expect_refused(server, "GET /echo HTTP/1.1\rHost: a\r\n\r\n", {400});
  expect_refused(server, posted("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\nXX0\r\n\r\n"), {400});
  expect_refused(server, posted("Transfer-Encoding: chunked\r\n", "3\r\nabcXX0\r\n\r\n"), {400});
  expect_refused(server, posted("Transfer-Encoding: chunked\r\n", "3\nabc\r\n0\r\n\r\n"), {400});
  expect_refused(server, posted("Transfer-Encoding: chunked\r\n", "3\r\nabc\n0\r\n\r\n"), {400});
}

TEST(BadInput, H7_HeaderNamesAndValues) {
  TestServer server;
  using namespace std::string_literals;
  for (const std::string& header :
       {"X\0Y: b"s, "X: a\0b"s, "X : b"s, "no colon"s, ": b"s, " X: b"s, "X: a\r\n folded"s, "X: a\r\n\tfolded"s, "X\x80: b"s,
        "X: \xA0"
        "5"s,
        "X: 5\x85"s, "X\xC3\xA4: b"s, "X(: b"s, "X: \x7F"s, "X: \x01"s, "X Y: b"s}) {
    expect_refused(server, posted(header + "\r\n", ""), {400});
  }
}

TEST(BadInput, H8_MethodTargetAndVersion) {
  TestServer server;
  for (const std::string line : {"G@T / HTTP/1.1",
                                 "get / HTTP/1.1",
                                 " GET / HTTP/1.1",
                                 "GET  / HTTP/1.1",
                                 "GET /  HTTP/1.1",
                                 "GET / HTTP/1.1 ",
                                 "GET /",
                                 "GET / HTTP/1.10",
                                 "GET / HTTP/1.256",
                                 "GET / HTP/1.1",
                                 "GET / http/1.1",
                                 "GET / HTTP/1",
                                 "GET / HTTP/1.1.1",
                                 "GET / HTTP/11",
                                 "GET\t/ HTTP/1.1",
                                 "GET /a\tb HTTP/1.1",
                                 "GET /\xC3\xA4 HTTP/1.1",
                                 "GET /a<b HTTP/1.1",
                                 "GET /a#b HTTP/1.1",
                                 "GET a HTTP/1.1",
                                 "GET ftp://a/ HTTP/1.1",
                                 "GET * HTTP/1.1",
                                 "GET"}) {
    expect_refused(server, line + "\r\nHost: a\r\n\r\n", {400});
  }
  for (const std::string version : {"HTTP/2.0", "HTTP/1.2", "HTTP/0.9", "HTTP/9.9"}) {
    expect_refused(server, "GET / " + version + "\r\nHost: a\r\n\r\n", {505});
  }
}

TEST(BadInput, H9_Host) {
  TestServer server;
  expect_refused(server, "GET /echo HTTP/1.1\r\n\r\n", {400});
  expect_refused(server, "GET /echo HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", {400});
  for (const std::string host : {"", "a b", "a,b", "a/b", "a@b", "a:b", "a:1:2", "[::1", "::1", "[::1]x", ":80", "a:123456"}) {
    expect_refused(server, "GET /echo HTTP/1.1\r\nHost: " + host + "\r\n\r\n", {400});
  }
  expect_refused(server, "GET http://b/echo HTTP/1.1\r\nHost: a\r\n\r\n", {400});
  EXPECT_EQ(status_of(server.exchange("GET http://A:80/echo HTTP/1.1\r\nHost: a:80\r\nConnection: close\r\n\r\n")), 200);
  EXPECT_EQ(status_of(server.exchange("GET /echo HTTP/1.1\r\nHost: [::1]:8000\r\nConnection: close\r\n\r\n")), 200);
}

TEST(BadInput, H15_Expect) {
  TestServer server;
  RawSocket client = server.connect();
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_THAT(client.receive_answer(), StartsWith("HTTP/1.1 100 "));
  client.send("hi");
  EXPECT_EQ(body_of(client.receive_answer()), "POST /echo|hi");

  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n");
  EXPECT_EQ(status_of(client.receive_answer()), 413) << "not 100: the body would be refused";
  expect_refused(*std::make_unique<TestServer>(), posted("Expect: a-miracle\r\nContent-Length: 1\r\n", ""), {417});
}

TEST(BadInput, H18_ResetWhileTheHandlerWorks) {
  TestServer server;
  RawSocket stays = server.connect();
  stays.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(server.await_held(1));
  RawSocket leaves = server.connect();
  leaves.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(server.await_held(2));
  leaves.reset();
  EXPECT_TRUE(server.await_cancelled(1));
  EXPECT_FALSE(server.first_held_is_cancelled());
  server.release();
  EXPECT_EQ(body_of(stays.receive_answer()), "released");
}

TEST(BadInput, H18_HalfCloseWhileTheHandlerWorks) {
  TestServer server;
  RawSocket client = server.connect();
  client.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(server.await_held(1));
  client.half_close();
  EXPECT_TRUE(server.await_cancelled(1));
  EXPECT_TRUE(server.first_held_is_cancelled());
  EXPECT_TRUE(client.at_end());
}

TEST(BadInput, H18_ResetInTheMiddleOfABodyOrAnAnswer) {
  TestServer server;
  RawSocket in_body = server.connect();
  in_body.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\npart");
  in_body.reset();
  RawSocket in_answer = server.connect();
  in_answer.send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(in_answer.receive_some());
  in_answer.reset();  // the server is writing: SIGPIPE would end this process
  EXPECT_EQ(status_of(server.exchange("GET /echo HTTP/1.1\r\n" + std::string(kClose))), 200);
}

TEST(BadInput, H19_PipelinedValidThenInvalid) {
  TestServer server;
  const std::string answers =
      server.exchange("GET /echo HTTP/1.1\r\nHost: a\r\n\r\nGET /echo HTTP/1.1\r\nHost : a\r\n\r\nGET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(answers, StartsWith("HTTP/1.1 200 "));
  const size_t second = answers.find("HTTP/1.1 400 ");
  ASSERT_NE(second, std::string::npos);
  EXPECT_EQ(answers.find("HTTP/1.1 ", second + 1), std::string::npos) << "nothing after a refusal is read as a request";
}

TEST(BadInput, H20_BodiesOfGetHeadAndDelete) {
  TestServer server;
  constexpr std::string_view kInner = "GET /inner HTTP/1.1\r\nHost: a\r\n\r\n";
  for (const std::string method : {"GET", "HEAD", "DELETE"}) {
    server.exchange(method + " /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: " + std::to_string(kInner.size()) +
                    "\r\n\r\n" + std::string(kInner));
  }
  ASSERT_EQ(server.seen(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(server.request(i).body, kInner);
}

TEST(BadInput, H21_PathsThatMeanTwoThings) {
  TestServer server;
  for (const std::string path : {"/%2e%2e%2fetc", "/a/../b", "/a/%2E%2E/b", "/..", "/a/.", "/a%00b", "/a%2fb", "/%c0%af", "/%e0%80%af",
                                 "/%ff", "/%", "/%4", "/%zz", "/a%0d%0ab"}) {
    expect_refused(server, "GET " + path + " HTTP/1.1\r\n" + std::string(kClose), {400});
  }
  const auto path_seen = [&](const std::string& path) {
    return body_of(server.exchange("GET " + path + " HTTP/1.1\r\n" + std::string(kClose)));
  };
  EXPECT_EQ(path_seen("/%252e%252e"), "GET /%2e%2e|") << "decoded once";
  EXPECT_EQ(path_seen("//a;b=c//"), "GET //a;b=c//|");
  EXPECT_EQ(path_seen("/.../..a"), "GET /.../..a|");
}

TEST(BadInput, H22_MethodsAndHeadAndOptions) {
  TestServer server;
  const std::string unknown = server.exchange("BREW /echo HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(status_of(unknown), 405);
  EXPECT_THAT(unknown, HasSubstr("allow: GET, HEAD, POST"));
  RawSocket client = server.connect();
  client.send("HEAD /echo HTTP/1.1\r\nHost: a\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: a\r\n\r\nGET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(client.receive_answer(/*head_only=*/true), HasSubstr("content-length: 11\r\n"));
  const std::string options = client.receive_answer();
  EXPECT_EQ(status_of(options), 204);
  EXPECT_THAT(options, HasSubstr("allow: GET"));
  EXPECT_EQ(body_of(client.receive_answer()), "GET /echo|");
}

TEST(BadInput, H23_OtherProtocols) {
  TestServer server;
  expect_refused(server, "CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n", {405});
  expect_refused(server, "TRACE /echo HTTP/1.1\r\nHost: a\r\n\r\n", {405});
  expect_refused(server, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {505});
  // An offer that need not be taken (RFC 9110, 7.8): clients in Java make it with the first request of every connection in the clear.
  const std::string offered = "Connection: close, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n";
  const std::string answer = server.exchange("GET /echo HTTP/1.1\r\nHost: a\r\n" + offered);
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_THAT(answer, Not(HasSubstr("upgrade")));
}

TEST(BadInput, H27_ResponseSplitting) {
  TestServer server;
  const std::string answer = server.exchange("GET /split HTTP/1.1\r\n" + std::string(kClose));
  EXPECT_THAT(answer, HasSubstr("x-echo: a  set-cookie: b  c\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("\nset-cookie")));
  EXPECT_THAT(answer, Not(HasSubstr("bad name")));
}

// ---- who comes after it ----

TEST(Successor, AcceptsFromTheSameSocketWhenTheFirstHasEnded) {
  Loops loops(1);
  const auto start = [&loops](std::string says, int listening) {
    return std::move(*Server::start(loops, {.listening = listening},
                                    [says = std::move(says)](const Request&, Responder responder) { responder.send({.body = says}); }));
  };
  const std::string ask = "GET / HTTP/1.1\r\n" + std::string(kClose);
  std::unique_ptr<Server> first = start("first", -1);
  const uint16_t port = first->port();
  std::unique_ptr<Server> second = start("second", ::dup(first->listening()));
  EXPECT_EQ(second->port(), port);
  EXPECT_TRUE(first->drain(std::chrono::seconds(10)));
  first.reset();
  for (int i = 0; i < 10; ++i) {
    RawSocket client = RawSocket::connect(port);
    client.send(ask);
    EXPECT_EQ(body_of(client.receive_all()), "second");
  }
}

TEST(Successor, TakesNoSocketThatDoesNotListen) {
  Loops loops(1);
  const auto server = Server::start(loops, {.listening = ::socket(AF_INET, SOCK_STREAM, 0)}, [](const Request&, const Responder&) {});
  ASSERT_FALSE(server);
  EXPECT_THAT(server.error().message, HasSubstr("does not listen"));
}

/// Writes more of a chunked answer than the socket takes, and its end in a later turn.
struct EndsLater final : RequestHandler {
  EndsLater(ServerStream& to, std::promise<void>& written) : stream(to), done(written) {}
  void on_request(Head&) override {}
  std::span<char> body_room(std::optional<uint64_t>) override { return {}; }
  void body_filled(size_t) override {}
  void on_writable() override {}
  void on_gone() override {}
  void on_progress(bool) override {
    stream.begin_answer({.headers = Headers()});
    EXPECT_EQ(stream.write(body, /*last=*/false), body.size());
    stream.loop().post([this] {
      EXPECT_EQ(stream.write("", /*last=*/true), 0u);
      done.set_value();
    });
  }
  const std::string body = std::string(size_t{32} << 20, 'x');
  ServerStream& stream;
  std::promise<void>& done;
};

TEST(Streaming, TheEndOfAnAnswerIsTakenWhileItsBodyWaits) {
  Loops loops(1);
  std::promise<void> written;
  const auto server =
      Server::start_streaming(loops, {}, [&](ServerStream& stream) { return std::make_shared<EndsLater>(stream, written); });
  RawSocket client = RawSocket::connect((*server)->port());
  client.send("GET / HTTP/1.1\r\n" + std::string(kClose));
  written.get_future().wait();
  const std::string answer = client.receive_all();
  EXPECT_GT(answer.size(), size_t{32} << 20);
  EXPECT_TRUE(answer.ends_with("\r\n0\r\n\r\n"));
}

TEST(BadInput, EachIsCounted) {
  TestServer server;
  server.exchange("GET /echo HTTP/1.1\r\nHost : a\r\n\r\n");
  server.exchange("GET /echo HTTP/1.1\r\n" + std::string(kClose));
  const std::string page = server.registry.render();
  EXPECT_THAT(page, HasSubstr("serin_http_bad_requests_total{listener=\"test\",reason=\"header\"} 1"));
  EXPECT_THAT(page, HasSubstr("code=\"200\"} 1"));
  EXPECT_THAT(page, HasSubstr("code=\"400\"} 1"));
}

}  // namespace
}  // namespace serin::net
