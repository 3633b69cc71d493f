// Who may use the admin API: the file of tokens, its mistakes and its changes; roles; too many requests.

#include "router/admin/access.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/router/store/test_folder.h"

namespace serin::router {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPlain = "an-operators-token-0001";
constexpr const char* kViewerToken = "a-viewers-token-00000001";
constexpr const char* kViewerHash = "a464003f198078b0cac820dbe8c39dcc6533a99d8bb07265e30079b84e3e272b";

class AccessTest : public ::testing::Test {
 protected:
  void write(const std::string& text, mode_t mode = 0600) const {
    const std::string aside = path_ + ".new";
    std::ofstream(aside, std::ios::binary) << text;
    ASSERT_EQ(::chmod(aside.c_str(), mode), 0);
    ASSERT_EQ(std::rename(aside.c_str(), path_.c_str()), 0);
  }
  std::unique_ptr<Access> open(int rate = 0) {
    auto access = Access::open({.tokens = path_, .rate = rate}, metrics_);
    EXPECT_TRUE(access) << access.error().message;
    return access ? *std::move(access) : nullptr;
  }
  void expect_refused(const std::string& text, const std::string& message, mode_t mode = 0600) {
    write(text, mode);
    const auto access = Access::open({.tokens = path_}, metrics_);
    ASSERT_FALSE(access) << text;
    EXPECT_THAT(access.error().message, HasSubstr(message));
  }
  static net::Request request(const std::string& token, const std::string& peer = "192.0.2.7:4711") {
    net::Request request{.method = "POST", .path = "/v1/rollouts", .peer = peer};
    if (!token.empty()) request.headers.add("Authorization", "Bearer " + token);
    return request;
  }
  static int status(const Admission& admission) { return admission.refusal ? admission.refusal->status : 200; }

  TestFolder folder_;
  const std::string path_ = folder_.file("tokens.yaml");
  metrics::Registry metrics_;
};

std::string operator_file() { return std::string("tokens:\n  - {name: ann, role: operator, token: ") + kPlain + "}\n"; }

TEST_F(AccessTest, ACertificateSaysWhoAsksWhereNoTokenDoes) {
  write(operator_file() +
        "  - {name: ci, role: viewer, certificate: 'URI:spiffe://corp/ci'}\n  - {name: eve, role: admin, certificate: 'CN:eve'}\n");
  const auto access = open();
  const auto ask = [&](std::vector<std::string> names, const std::string& token = "") {
    net::Request asking = request(token);
    asking.certificate = std::make_shared<const net::PeerCertificate>(net::PeerCertificate{.names = std::move(names)});
    return access->admit(asking);
  };
  EXPECT_EQ(ask({"URI:spiffe://corp/ci", "CN:eve"}).caller.name, "ci");
  EXPECT_EQ(ask({"DNS:nobody", "CN:eve"}).caller.role, Role::kAdmin);
  EXPECT_EQ(ask({"CN:eve"}, kPlain).caller.name, "ann") << "who shows a token wants to be that one";
  EXPECT_EQ(status(ask({"CN:eve"}, "some-other-token-0001")), 401);
  EXPECT_EQ(status(ask({})), 401);
  const Admission unknown = ask({"DNS:nobody", "CN:no one"});
  EXPECT_EQ(status(unknown), 401);
  EXPECT_THAT(unknown.refusal->body, HasSubstr("DNS:nobody, CN:no one"));
  EXPECT_EQ(status(access->admit(request(""))), 401);
  for (const char* bad : {"", "spiffe://corp/ci", "IP:10.0.0.1", "CN:", "eve"})
    expect_refused(fmt::format("tokens: [{{name: a, role: viewer, certificate: '{}'}}]\n", bad), "must be a name of a certificate");
  expect_refused("tokens: [{name: a, role: viewer, certificate: 'CN:a'}, {name: b, role: admin, certificate: 'CN:a'}]\n",
                 "is the certificate of 'a'");
  expect_refused("tokens: [{name: a, role: viewer, certificate: 'CN:a', token: 0123456789abcdef}]\n", "must have one of");
}

TEST_F(AccessTest, WithoutTokensACertificateNamesAnAdmin) {
  const auto access = *Access::open({}, metrics_);
  net::Request asking = request("");
  asking.certificate = std::make_shared<const net::PeerCertificate>(net::PeerCertificate{.names = {"DNS:ci.corp"}});
  EXPECT_EQ(access->admit(asking).caller.name, "DNS:ci.corp");
  EXPECT_EQ(access->admit(request("")).caller.name, "192.0.2.7:4711");
}

TEST_F(AccessTest, ATokenSaysWhoAsksAndWhatHeMay) {
  write(operator_file());
  const auto access = open();
  const Admission admission = access->admit(request(kPlain));
  EXPECT_FALSE(admission.refusal);
  EXPECT_EQ(admission.caller.name, "ann");
  EXPECT_FALSE(access->require(Role::kViewer, admission.caller, "status"));
  EXPECT_FALSE(access->require(Role::kOperator, admission.caller, "abort"));
  const auto refusal = access->require(Role::kAdmin, admission.caller, "promote");
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, 403);
  EXPECT_THAT(refusal->body, HasSubstr("promote needs the role admin; 'ann' has operator"));
}

TEST_F(AccessTest, ATokenMayBeStoredAsItsHash) {
  // printf %s a-viewers-token-00000001 | sha256sum
  write(std::string("tokens: [{name: grafana, role: viewer, sha256: ") + kViewerHash + "}]\n", 0644);
  const auto access = open();
  EXPECT_EQ(access->admit(request(kViewerToken)).caller.name, "grafana");
  EXPECT_EQ(status(access->admit(request(kViewerHash))), 401) << "the hash is not the token";
}

TEST_F(AccessTest, R12WhoHasNoTokenOrAWrongOneIs401) {
  write(operator_file());
  const auto access = open();
  const Admission none = access->admit(request(""));
  ASSERT_EQ(status(none), 401);
  EXPECT_EQ(none.refusal->headers.get("www-authenticate"), "Bearer realm=\"serin\"");
  const Admission wrong = access->admit(request("an-operators-token-0002"));
  ASSERT_EQ(status(wrong), 401);
  EXPECT_THAT(std::string(wrong.refusal->headers.get("www-authenticate")), HasSubstr("invalid_token"));
  EXPECT_THAT(wrong.refusal->body, Not(HasSubstr("0002"))) << "a token that was mistyped is still nearly one";
  for (const char* header : {"Basic YW5uOmFubg==", "Bearer", "Bearer ", "an-operators-token-0001", "Bearer an-operators-token-0001 "}) {
    net::Request other = request("");
    other.headers.set("Authorization", header);
    EXPECT_EQ(status(access->admit(other)), 401) << header;
  }
  net::Request lower = request("");
  lower.headers.set("Authorization", std::string("bearer ") + kPlain);
  EXPECT_EQ(status(access->admit(lower)), 200) << "the scheme is compared without case (RFC 7235)";
}

TEST_F(AccessTest, WithoutAFileWhoeverReachesThePortIsAnAdmin) {
  const auto access = *Access::open({}, metrics_);
  const Admission admission = access->admit(request(""));
  EXPECT_FALSE(admission.refusal);
  EXPECT_FALSE(access->require(Role::kAdmin, admission.caller, "promote"));
}

TEST_F(AccessTest, AChangedFileIsReadAgain) {
  write(operator_file());
  const auto access = open();
  ASSERT_EQ(status(access->admit(request(kPlain))), 200);
  write(std::string("tokens: [{name: grafana, role: viewer, sha256: ") + kViewerHash + "}]\n");
  EXPECT_EQ(status(access->admit(request(kPlain))), 401) << "taken back";
  EXPECT_EQ(status(access->admit(request(kViewerToken))), 200);
}

TEST_F(AccessTest, C7AFileThatBecomesBadLeavesTheTokensOfBefore) {
  write(operator_file());
  const auto access = open();
  const auto stale = metrics_.gauge("serin_admin_tokens_stale", "");
  for (const char* bad : {"tokens: [", "tokens: []", ""}) {
    write(bad);
    EXPECT_EQ(status(access->admit(request(kPlain))), 200) << bad;
    EXPECT_EQ(stale->value(), 1);
  }
  ASSERT_EQ(std::remove(path_.c_str()), 0);
  EXPECT_EQ(status(access->admit(request(kPlain))), 200) << "gone";
  write(operator_file());
  EXPECT_EQ(status(access->admit(request(kPlain))), 200);
  EXPECT_EQ(stale->value(), 0);
}

TEST_F(AccessTest, C1MistakesInTheFileAreNamedWithTheirLine) {
  const std::string hash(64, 'a');
  expect_refused("tokens:\n  - {name: ann, role: king, sha256: " + hash + "}\n", "tokens.yaml:2:23: tokens[0].role: must be one of viewer");
  expect_refused("tokens:\n  - {role: admin, sha256: " + hash + "}\n", "key 'name' is missing");
  expect_refused("tokens:\n  - {name: 'a b', role: admin, sha256: " + hash + "}\n", "without spaces");
  expect_refused("tokens:\n  - {name: ann, role: admin}\n", "one of sha256, token and certificate");
  expect_refused("tokens:\n  - {name: ann, role: admin, sha256: abc}\n", "64 lower-case hexadecimal digits");
  expect_refused("tokens:\n  - {name: ann, role: admin, token: short}\n", "16 to 512 visible");
  expect_refused("tokens:\n  - {name: ann, role: admin, secret: x}\n", "unknown key 'secret'");
  expect_refused("tokens: []\n", "list of 1 to 1000");
  expect_refused("tokens:\n  - {name: a, role: admin, sha256: " + hash + "}\n  - {name: b, role: viewer, sha256: " + hash + "}\n",
                 ":3:5: tokens[1]: is the token of 'a'");
  expect_refused(
      "tokens:\n  - {name: a, role: admin, sha256: " + hash + "}\n  - {name: a, role: viewer, sha256: " + std::string(64, 'b') + "}\n",
      "name 'a' given twice");
}

TEST_F(AccessTest, C8APlainTokenThatOthersMayReadIsRefused) {
  expect_refused(operator_file(), "mode 644): chmod 600", 0644);
  expect_refused(operator_file(), "mode 640): chmod 600", 0640);
  const auto access = Access::open({.tokens = path_}, metrics_);
  EXPECT_THAT(access.error().message, Not(HasSubstr(kPlain))) << "and not told either";
}

TEST_F(AccessTest, TooManyRequestsOfOneCallerAre429AndNobodyElses) {
  write(operator_file());
  const auto access = open(/*rate=*/5);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(status(access->admit(request(kPlain))), 200) << i;
  const Admission refused = access->admit(request(kPlain));
  ASSERT_EQ(status(refused), 429);
  EXPECT_EQ(refused.refusal->headers.get("retry-after"), "1");
  EXPECT_EQ(status(access->admit(request("wrong-token-of-somebody"))), 401) << "another one has a share of his own";
  net::Request abort = request(kPlain);
  abort.path = "/v1/rollouts/digits:abort";
  EXPECT_EQ(status(access->admit(abort)), 200) << "what takes traffic off a canary is never refused for its rate";
}

TEST_F(AccessTest, R12GuessingIsSlowWhateverNameIsGuessed) {
  write(operator_file());
  const auto access = open(/*rate=*/5);
  int refused = 0;
  for (int i = 0; i < 50; ++i) refused += status(access->admit(request("guess-number-" + std::to_string(i) + "-of-many"))) == 429 ? 1 : 0;
  EXPECT_GE(refused, 35);
  EXPECT_EQ(status(access->admit(request(kPlain))), 200) << "who has a token is not kept out from the same address";
  EXPECT_EQ(status(access->admit(request("guess", "192.0.2.8:1"))), 401) << "nor is another address";
}

TEST(RateLimit, FillsUpAgainAndForgetsWhoIsIdle) {
  using namespace std::chrono_literals;
  RateLimit limit(/*per_second=*/2);
  RateLimit::Time now{};
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(limit.take("ann", now));
  EXPECT_FALSE(limit.take("ann", now));
  EXPECT_FALSE(limit.take("ann", now + 400ms));
  EXPECT_TRUE(limit.take("ann", now + 500ms));
  EXPECT_FALSE(limit.take("ann", now)) << "time does not go backwards";
  for (int i = 0; i < 5000; ++i) EXPECT_TRUE(limit.take("caller " + std::to_string(i), now + 10s));
}

}  // namespace
}  // namespace serin::router
