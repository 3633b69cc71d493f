// tls_client_test.cc: whom a client believes, what it says where it does not, and that an answer that was cut off is none.

#include <gmock/gmock.h>

#include "tests/runtime/net/test_client.h"
#include "tests/runtime/net/test_server.h"
#include "tests/runtime/net/tls_peer.h"

namespace serin::net {
namespace {

using namespace std::chrono_literals;
using test::Authority;
using test::RawSocket;
using test::ScriptedServer;
using test::TestClient;
using test::TestServer;
using test::TestSession;
using test::TlsPeer;
using testing::AllOf;
using testing::HasSubstr;

class TlsClient : public testing::Test {
 protected:
  std::shared_ptr<TlsContext> believing(TlsClientOptions options = {}) const {
    if (options.ca.empty() && !options.insecure_skip_verify) options.ca = authority_.file();
    return *TlsContext::for_client(std::move(options));
  }
  std::shared_ptr<TlsContext> showing(const test::Names& names) const {
    const test::Files files = authority_.issue("server", names);
    return *TlsContext::for_server({.certificate = files.certificate, .key = files.key});
  }
  /// What a client of 127.0.0.1 says of a server with this certificate.
  std::string ask(const test::Names& names, TlsClientOptions options = {}) const {
    const TestServer server_of({}, 1, false, showing(names));
    const uint16_t port = const_cast<TestServer&>(server_of).port();
    const auto tls = believing(std::move(options));
    const auto answer = TestClient({.tls = tls}).get(port), waited_for = TestSession({.tls = tls}).get(port);
    const std::string text = answer ? answer->body : answer.error().message;
    EXPECT_EQ(waited_for ? waited_for->body : waited_for.error().message, text) << "both clients";
    return text;
  }

  const Authority authority_{"authority"};
};

template <class>
class AnyTlsClient : public TlsClient {};
using Clients = testing::Types<TestClient, TestSession>;
TYPED_TEST_SUITE(AnyTlsClient, Clients);

TYPED_TEST(AnyTlsClient, AsksOneConnectionAfterTheOther) {
  TestServer server({}, 1, false, this->showing({}));
  TypeParam client({.tls = this->believing()});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(client.get(server.port())->body, "GET /echo|");
  EXPECT_EQ(client.open_connections(), 1u);
}

TEST_F(TlsClient, SpeaksHttp2WhereTheServerAgrees) {
  TestServer server({}, 1, /*http2=*/true, showing({}));
  TestClient client({.http2 = true, .tls = believing()});
  const auto answer = client.get(server.port(), "/trailers");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->trailers.get("grpc-status"), "0");
  EXPECT_EQ(client.get(server.port(), "/big")->body.size(), size_t{8} << 20);
  const auto large = std::make_shared<const std::string>(size_t{3} << 20, 'y');
  EXPECT_EQ(client.send(server.port(), {.method = "POST", .target = "/echo", .body = large})->body, "POST /echo|" + *large);
}

TEST_F(TlsClient, SaysWhereTheServerHasNoHttp2) {
  TestServer refusing({}, 1, /*http2=*/false, showing({}));
  TestClient client({.http2 = true, .tls = believing()});
  EXPECT_THAT(client.get(refusing.port()).error().message, HasSubstr("TLS: the other side refuses: no application protocol"));
  const test::Files files = authority_.issue("server");
  ScriptedServer silent([&](RawSocket& socket) { (void)TlsPeer::accept(std::move(socket), {.files = files}).receive_some(); });
  EXPECT_THAT(client.get(silent.port()).error().message, HasSubstr("does not offer HTTP/2"));
}

TYPED_TEST(AnyTlsClient, MovesLargeBodiesBothWays) {
  TestServer server({}, 1, false, this->showing({}));
  TypeParam client({.tls = this->believing()});
  const auto body = std::make_shared<const std::string>(size_t{9} << 20, 'z');
  const auto answer = client.send(server.port(), {.method = "POST", .target = "/echo", .body = body});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "POST /echo|" + *body);
}

// ---- whom it believes ----

TEST_F(TlsClient, RefusesAnUnknownAuthority) {
  const Authority other("other");
  EXPECT_THAT(ask({}, {.ca = other.file()}),
              AllOf(HasSubstr("127.0.0.1:"), HasSubstr("its certificate (CN=test) is signed by CN=authority, an unknown authority"),
                    HasSubstr(other.file())));
  EXPECT_THAT(TestClient({.tls = *TlsContext::for_client({})}).get(TestServer({}, 1, false, showing({})).port()).error().message,
              HasSubstr("the authorities of this system"));
}

TEST_F(TlsClient, RefusesWhatIsNotValidNow) {
  EXPECT_THAT(ask({.from_seconds = -7200, .until_seconds = -60}), HasSubstr("its certificate (CN=test) expired on 20"));
  EXPECT_THAT(ask({.from_seconds = 3600, .until_seconds = 7200}), HasSubstr("is not valid before 20"));
}

TEST_F(TlsClient, RefusesACertificateForSomebodyElse) {
  EXPECT_THAT(ask({.alternative = "DNS:a.corp,DNS:*.b.corp,IP:10.0.0.1"}),
              HasSubstr("is for DNS:a.corp, DNS:*.b.corp, IP:10.0.0.1, not for '127.0.0.1'"));
  EXPECT_THAT(ask({.common_name = "127.0.0.1", .alternative = ""}), HasSubstr("has no subject alternative name"));
  EXPECT_THAT(ask({.alternative = "DNS:127.0.0.1"}), HasSubstr("not for '127.0.0.1'")) << "an address is no name";
}

TEST_F(TlsClient, TakesTheNameItWasTold) {
  EXPECT_EQ(ask({.alternative = "DNS:a.corp"}, {.server_name = "a.corp"}), "GET /echo|");
  EXPECT_EQ(ask({.alternative = "DNS:*.a.corp"}, {.server_name = "b.a.corp."}), "GET /echo|");
  EXPECT_EQ(ask({.alternative = "IP:::1"}, {.server_name = "::1"}), "GET /echo|");
  EXPECT_THAT(ask({.alternative = "DNS:*.a.corp"}, {.server_name = "c.b.a.corp"}), HasSubstr("not for 'c.b.a.corp'"));
}

TEST_F(TlsClient, BelievesEverybodyWhereItIsToldTo) {
  EXPECT_EQ(ask({.alternative = "DNS:a.corp", .from_seconds = -7200, .until_seconds = -60}, {.insecure_skip_verify = true}), "GET /echo|");
}

TEST_F(TlsClient, BelievesACertificateThatIsInTheFileItself) {
  const auto tls = showing({});
  TestServer server({}, 1, false, tls);
  TestClient client({.tls = believing({.ca = authority_.path("server.crt")})});
  EXPECT_EQ(client.get(server.port())->body, "GET /echo|");
}

TEST_F(TlsClient, ShowsItsOwnCertificate) {
  const test::Files own = authority_.issue("client", {.common_name = "ann", .alternative = ""}), files = authority_.issue("server");
  TestServer server({}, 1, /*http2=*/true,
                    *TlsContext::for_server({.certificate = files.certificate, .key = files.key, .client_ca = authority_.file()}));
  for (const bool http2 : {false, true}) {
    TestClient client({.http2 = http2, .tls = believing({.certificate = own.certificate, .key = own.key})});
    EXPECT_EQ(client.get(server.port())->body, "GET /echo|");
    EXPECT_THAT(server.request(server.seen() - 1).certificate->names, testing::ElementsAre("CN:ann"));
  }
}

// ---- servers that do not do as they should ----

TYPED_TEST(AnyTlsClient, SaysThatAServerSpeaksNoTls) {
  TestServer server;
  TypeParam client({.tls = this->believing()});
  EXPECT_THAT(client.get(server.port()).error().message, HasSubstr("TLS: the other side does not speak it"));
}

TYPED_TEST(AnyTlsClient, GivesUpOnAHandshakeThatDoesNotCome) {
  ScriptedServer silent([](RawSocket& socket) { (void)socket.receive_all(); });
  TypeParam client({.connect_timeout = 100ms, .tls = this->believing()});
  const auto answer = client.get(silent.port());
  EXPECT_EQ(answer.error().code, Code::kUnavailable);
  EXPECT_THAT(answer.error().message, HasSubstr("TLS: the handshake took too long"));
}

TYPED_TEST(AnyTlsClient, TakesAnAnswerThatEndsWithTheConnectionOnlyIfItWasNotCutOff) {
  const test::Files files = this->authority_.issue("server");
  for (const bool properly : {true, false}) {
    ScriptedServer server([&](RawSocket& socket) {
      TlsPeer peer = TlsPeer::accept(std::move(socket), {.files = files});
      (void)peer.receive_answer();  // the request
      peer.send("HTTP/1.1 200 OK\r\n\r\nall that there is");
      if (properly) peer.say_end();
    });
    TypeParam client({.tls = this->believing()});
    const auto answer = client.get(server.port());
    if (properly) {
      EXPECT_EQ(answer->body, "all that there is");
    } else {
      ASSERT_FALSE(answer);
      EXPECT_EQ(answer.error().code, Code::kIo);
      EXPECT_THAT(answer.error().message, HasSubstr("the connection was cut off in the middle of the answer"));
    }
  }
}

}  // namespace
}  // namespace serin::net
