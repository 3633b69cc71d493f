// tls_server_test.cc: a server with TLS, seen by a client that no one here wrote.

#include <gmock/gmock.h>

#include <thread>

#include "tests/runtime/net/test_client.h"
#include "tests/runtime/net/test_server.h"
#include "tests/runtime/net/tls_peer.h"

namespace serin::net {
namespace {

using namespace std::chrono_literals;
using test::Authority;
using test::body_of;
using test::PeerOptions;
using test::RawSocket;
using test::status_of;
using test::TestServer;
using test::TlsPeer;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kEcho = "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n";

class TlsServer : public testing::Test {
 protected:
  std::shared_ptr<TlsContext> context(TlsServerOptions options = {}) {
    options.certificate = files_.certificate;
    options.key = files_.key;
    return *TlsContext::for_server(std::move(options));
  }
  void start(TlsServerOptions options = {}, Limits limits = {}, bool http2 = false) {
    tls_ = context(std::move(options));
    server_.emplace(limits, 1, http2, tls_);
  }
  /// A server that asks for certificates.
  void start_asking(bool clients_may_omit = false) { start({.client_ca = authority_.file(), .clients_may_omit = clients_may_omit}); }
  TlsPeer connect(const PeerOptions& options = {}, int receive_buffer = 0) {
    return TlsPeer::connect(server_->port(), options, receive_buffer);
  }
  void await_count(const std::string& reason) {
    while (server_->registry.render().find("reason=\"" + reason + "\"} 1") == std::string::npos) std::this_thread::sleep_for(5ms);
  }
  /// What becomes of a request by a client with this certificate.
  std::string ask_with(const test::Files& files) {
    TlsPeer peer = connect({.files = files});
    peer.send(kEcho);
    return peer.receive_answer();
  }

  Authority authority_{"authority"};
  test::Files files_ = authority_.issue("server");
  std::shared_ptr<TlsContext> tls_;
  std::optional<TestServer> server_;
};

// ---- what it serves ----

TEST_F(TlsServer, AnswersAndKeepsTheConnection) {
  start();
  TlsPeer peer = connect();
  EXPECT_EQ(peer.version(), "TLSv1.3");
  peer.send(kEcho);
  EXPECT_EQ(body_of(peer.receive_answer()), "GET /echo|");
  peer.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(status_of(peer.receive_answer()), 100);
  peer.send("hello");
  EXPECT_EQ(body_of(peer.receive_answer()), "POST /echo|hello");
}

TEST_F(TlsServer, SpeaksNothingOlderThan13UnlessToldTo) {
  start();
  EXPECT_FALSE(connect({.most_version = TLS1_2_VERSION}).agreed());
  start({.least = TlsVersion::k12});
  TlsPeer peer = connect({.most_version = TLS1_2_VERSION});
  EXPECT_EQ(peer.version(), "TLSv1.2");
  peer.send(kEcho);
  EXPECT_EQ(status_of(peer.receive_answer()), 200);
  EXPECT_FALSE(connect({.most_version = TLS1_1_VERSION}).agreed());
}

TEST_F(TlsServer, ReadsARequestInRecordsOfOneByte) {
  start();
  TlsPeer peer = connect();
  for (const char byte : std::string("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"))
    peer.send({&byte, 1});
  EXPECT_EQ(body_of(peer.receive_answer()), "POST /echo|abc");
}

TEST_F(TlsServer, TakesPipelinedRequests) {
  start();
  TlsPeer peer = connect();
  std::string all;
  for (int i = 0; i < 1000; ++i) all += "GET /echo?" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\n\r\n";
  peer.send(all);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(body_of(peer.receive_answer()), "GET /echo?" + std::to_string(i) + "|");
}

TEST_F(TlsServer, WaitsForAClientThatReadsSlowly) {
  start();
  TlsPeer peer = connect({}, /*receive_buffer=*/4096);
  peer.send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n" + std::string(kEcho));
  std::this_thread::sleep_for(50ms);  // until everything in between is full
  EXPECT_EQ(body_of(peer.receive_answer()), std::string(size_t{8} << 20, 'x'));
  EXPECT_EQ(body_of(peer.receive_answer()), "GET /echo|");
}

TEST_F(TlsServer, ReadsALargeBodyWhileItsAnswersWait) {
  start();
  TlsPeer peer = connect();
  std::string body(3'000'000, 'x');
  for (size_t i = 0; i < body.size(); i += 1000) body[i] = static_cast<char>('a' + i / 1000 % 26);
  peer.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n");
  peer.send(body);
  EXPECT_EQ(body_of(peer.receive_answer()), "POST /echo|" + body);
}

TEST_F(TlsServer, GivesUpOnAClientThatReadsNothing) {
  start({}, {.write_timeout = 100ms});
  TlsPeer peer = connect({}, /*receive_buffer=*/4096);
  peer.send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
  await_count("write_timeout");
  peer.receive_all();
  EXPECT_FALSE(peer.ended_properly());
}

TEST_F(TlsServer, ResumesSessions) {
  start_asking();
  const test::Files files = authority_.issue("client");
  TlsPeer first = connect({.files = files});
  first.send(kEcho);
  first.receive_answer();  // and the ticket before it
  SSL_SESSION* session = SSL_get1_session(first.ssl());
  TlsPeer second = connect({.files = files, .session = session});
  second.send(kEcho);
  EXPECT_EQ(status_of(second.receive_answer()), 200);
  EXPECT_EQ(SSL_session_reused(second.ssl()), 1);
  EXPECT_THAT(server_->request(1).certificate->names, ElementsAre("DNS:localhost", "CN:test"));
  SSL_SESSION_free(session);
}

TEST_F(TlsServer, ChangesKeysWhenAsked) {
  start();
  TlsPeer peer = connect();
  for (int i = 0; i < 3; ++i) {
    SSL_key_update(peer.ssl(), SSL_KEY_UPDATE_REQUESTED);
    peer.send(kEcho);
    EXPECT_EQ(body_of(peer.receive_answer()), "GET /echo|");
  }
}

// ---- protocols ----

TEST_F(TlsServer, OffersHttp2WhereItIsSpoken) {
  start({}, {}, /*http2=*/true);
  EXPECT_EQ(connect({.protocols = "\x02h2\x08http/1.1"}).protocol(), "h2");
  EXPECT_EQ(connect({.protocols = "\x08http/1.1"}).protocol(), "http/1.1");
  EXPECT_EQ(connect().protocol(), "");
  start();
  EXPECT_EQ(connect({.protocols = "\x02h2\x08http/1.1"}).protocol(), "http/1.1");
}

TEST_F(TlsServer, RefusesWhoNamesProtocolsThatItDoesNotSpeak) {
  start();
  EXPECT_FALSE(connect({.protocols = "\x06spdy/3"}).agreed());
  await_count("tls_handshake");
}

// ---- certificates of clients ----

TEST_F(TlsServer, TellsTheHandlerWhoTheClientIs) {
  start_asking();
  EXPECT_EQ(status_of(ask_with(
                authority_.issue("client", {.common_name = "ann", .alternative = "DNS:ci.corp,URI:spiffe://corp/ci,IP:10.0.0.1"}))),
            200);
  EXPECT_THAT(server_->request(0).certificate->names, ElementsAre("URI:spiffe://corp/ci", "DNS:ci.corp", "CN:ann"));
}

TEST_F(TlsServer, RefusesAClientWithoutACertificate) {
  start_asking();
  EXPECT_EQ(ask_with({}), "");
  await_count("tls_client_certificate");
  EXPECT_EQ(server_->seen(), 0u);
}

TEST_F(TlsServer, LetsAClientOmitItsCertificateWhereItMay) {
  start_asking(/*clients_may_omit=*/true);
  EXPECT_EQ(status_of(ask_with({})), 200);
  EXPECT_EQ(server_->request(0).certificate, nullptr);
  EXPECT_EQ(ask_with(Authority("other").issue("client")), "") << "a bad one is worse than none";
}

TEST_F(TlsServer, H25_RefusesCertificatesThatAreNotGood) {
  const Authority other("other");
  start_asking();
  EXPECT_EQ(ask_with(other.issue("client")), "");
  EXPECT_EQ(ask_with(authority_.issue("expired", {.from_seconds = -7200, .until_seconds = -60})), "");
  EXPECT_EQ(ask_with(authority_.issue("future", {.from_seconds = 3600, .until_seconds = 7200})), "");
  EXPECT_EQ(server_->seen(), 0u);
}

TEST_F(TlsServer, TellsAClientWhyItWasRefused) {
  start_asking();
  const auto tls = *TlsContext::for_client({.ca = authority_.file()});
  test::TestClient client({.tls = tls});
  const auto answer = client.get(server_->port());
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("TLS: the other side refuses: certificate required"));
}

// ---- bad clients ----

TEST_F(TlsServer, H25_AnswersPlainHttpInTheClear) {
  start();
  const std::string answer = server_->exchange(kEcho);
  EXPECT_EQ(status_of(answer), 400);
  EXPECT_THAT(answer, HasSubstr("this port speaks TLS: use https://"));
  await_count("tls_plain_http");
}

TEST_F(TlsServer, GivesUpOnAHandshakeThatDoesNotCome) {
  start({}, {.header_timeout = 100ms});
  RawSocket silent = server_->connect();
  EXPECT_TRUE(silent.at_end());
  await_count("tls_timeout");
}

TEST_F(TlsServer, SurvivesGarbage) {
  start();
  uint64_t random = 1;
  for (int i = 0; i < 200; ++i) {
    std::string bytes = i % 2 == 0 ? "\x16\x03\x01" : "";  // a record of the handshake; or nothing like it
    for (int k = 0; k < 300; ++k) bytes.push_back(static_cast<char>((random = random * 6364136223846793005u + 1442695040888963407u) >> 56));
    RawSocket client = server_->connect();
    client.send(bytes);
    client.half_close();
    client.receive_all();
  }
  TlsPeer peer = connect();
  peer.send(kEcho);
  EXPECT_EQ(status_of(peer.receive_answer()), 200);
}

TEST_F(TlsServer, EndsAConnectionWhoseBytesWereChanged) {
  start();
  TlsPeer peer = connect();
  peer.send(kEcho);
  peer.receive_answer();
  peer.socket().send(std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'x'));
  EXPECT_FALSE(peer.receive_some());
  EXPECT_EQ(server_->seen(), 1u);
}

TEST_F(TlsServer, CountsAClientThatHangsUpAsGone) {
  start();
  TlsPeer peer = connect();
  peer.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(server_->await_held(1));
  peer.say_end();  // close_notify: the socket stays open
  EXPECT_TRUE(server_->await_cancelled(1));
}

// ---- ends ----

TEST_F(TlsServer, SaysThatAnIdleConnectionEnds) {
  start({}, {.idle_timeout = 50ms});
  TlsPeer peer = connect();
  peer.send(kEcho);
  peer.receive_answer();
  EXPECT_FALSE(peer.receive_some());
  EXPECT_TRUE(peer.ended_properly());
}

TEST_F(TlsServer, SaysThatAnAnswerIsTheLast) {
  start();
  TlsPeer peer = connect();
  peer.send("GET /echo HTTP/1.0\r\n\r\n");
  EXPECT_THAT(peer.receive_all(), testing::EndsWith("GET /echo|"));
  EXPECT_TRUE(peer.ended_properly());
}

TEST_F(TlsServer, DrainsWithoutWaitingForHandshakes) {
  start();
  RawSocket silent = server_->connect();
  TlsPeer idle = connect(), busy = connect();
  busy.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(server_->await_held(1));
  std::thread release([this] {
    std::this_thread::sleep_for(20ms);
    server_->release();
  });
  EXPECT_TRUE(server_->server().drain(8s));
  release.join();
  EXPECT_EQ(body_of(busy.receive_answer()), "released");
}

// ---- other certificates while it runs ----

TEST_F(TlsServer, ShowsANewCertificateOnceItsFilesAreThere) {
  start();
  TlsPeer before = connect();
  const auto shown = [](TlsPeer& peer) {
    char name[64] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(SSL_get0_peer_certificate(peer.ssl())), NID_commonName, name, sizeof name);
    return std::string(name);
  };
  authority_.issue("server", {.common_name = "second"});
  tls_->refresh();
  EXPECT_FALSE(tls_->stale());
  TlsPeer unsettled = connect();
  EXPECT_EQ(shown(unsettled), "test") << "somebody may still be writing";
  tls_->refresh();
  TlsPeer after = connect();
  EXPECT_EQ(shown(after), "second");
  before.send(kEcho);
  EXPECT_EQ(status_of(before.receive_answer()), 200) << "who was connected stays so";
}

TEST_F(TlsServer, KeepsTheOldPairWhereTheNewOneIsBad) {
  start();
  const auto expires = tls_->expires();
  const std::string old_key = authority_.path("old.key");
  std::filesystem::copy_file(files_.key, old_key);
  authority_.issue("server", {.until_seconds = 7200});
  std::filesystem::copy_file(old_key, files_.key, std::filesystem::copy_options::overwrite_existing);
  tls_->refresh(/*at_once=*/true);
  EXPECT_TRUE(tls_->stale());
  EXPECT_EQ(tls_->expires(), expires);
  TlsPeer peer = connect();
  EXPECT_TRUE(peer.agreed());
  std::filesystem::remove(files_.certificate);
  tls_->refresh(/*at_once=*/true);
  EXPECT_TRUE(tls_->stale());
  authority_.issue("server", {.until_seconds = 9000});
  tls_->refresh(/*at_once=*/true);
  EXPECT_FALSE(tls_->stale());
  EXPECT_GT(tls_->expires(), expires);
}

TEST_F(TlsServer, LosesNoRequestWhileCertificatesChange) {
  start();
  std::atomic<bool> ending{false};
  std::atomic<int> asked{0};
  std::thread client([&] {
    test::TestClient asking({.tls = *TlsContext::for_client({.ca = authority_.file()})});
    while (!ending) {
      Outgoing request{.target = "/echo"};
      if (asked++ % 2 == 0) request.headers.add("connection", "close");
      const auto answer = asking.send(server_->port(), std::move(request));
      ASSERT_TRUE(answer) << answer.error().message;
      ASSERT_EQ(answer->status, 200);
    }
  });
  for (int i = 0; i < 50; ++i) {
    authority_.issue("server", {.until_seconds = 7200 + i});
    tls_->refresh(/*at_once=*/true);
    ASSERT_FALSE(tls_->stale());
    const int before = asked;
    while (asked < before + 3) std::this_thread::yield();
  }
  ending = true;
  client.join();
}

}  // namespace
}  // namespace serin::net
