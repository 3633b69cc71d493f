// tls_files_test.cc: every file that is not what it should be is refused with its name and the reason; what changes is watched.

#include <gmock/gmock.h>

#include <thread>

#include "runtime/base/file.h"
#include "runtime/base/metrics.h"
#include "runtime/net/tls/tls_watch.h"
#include "tests/runtime/net/test_certificates.h"

namespace serin::net {
namespace {

using namespace std::chrono_literals;
using test::Authority;
using testing::AllOf;
using testing::HasSubstr;

class TlsFiles : public testing::Test {
 protected:
  std::string refused(const TlsServerOptions& options) const {
    const auto made = TlsContext::for_server(options);
    return made ? "accepted" : made.error().message;
  }
  std::string with_certificate(const std::string& path) const { return refused({.certificate = path, .key = files_.key}); }
  std::string with_key(const std::string& path) const { return refused({.certificate = files_.certificate, .key = path}); }
  std::string with_authority(const std::string& path) const {
    return refused({.certificate = files_.certificate, .key = files_.key, .client_ca = path});
  }
  std::string write(const std::string& name, std::string_view text) const {
    EXPECT_TRUE(write_file_atomically(authority_.path(name), text));
    return authority_.path(name);
  }

  const Authority authority_{"authority"};
  const test::Files files_ = authority_.issue("server");
};

TEST_F(TlsFiles, AreReadWhereTheyAreGood) {
  EXPECT_EQ(with_authority(authority_.file()), "accepted");
  const auto both = *read_file(files_.key, 1 << 20) + "and some words\n" + *read_file(files_.certificate, 1 << 20);
  const std::string bundle = write("bundle.pem", both);
  EXPECT_EQ(refused({.certificate = bundle, .key = bundle}), "accepted") << "as HAProxy has them";
}

TEST_F(TlsFiles, ThatAreMissing) {
  const std::string path = authority_.path("none");
  for (const auto& message : {with_certificate(path), with_key(path), with_authority(path)})
    EXPECT_THAT(message, AllOf(HasSubstr(path), HasSubstr("No such file")));
}

TEST_F(TlsFiles, ThatAreFolders) {
  const std::string path = authority_.path(".");
  for (const auto& message : {with_certificate(path), with_key(path), with_authority(path)})
    EXPECT_THAT(message, AllOf(HasSubstr(path), HasSubstr("not a regular file")));
}

TEST_F(TlsFiles, ThatHoldSomethingElse) {
  for (const std::string& path : {write("empty", ""), write("words", "certificate\n"), write("der", std::string("\x30\x82\x01\x00", 4))}) {
    EXPECT_THAT(with_certificate(path), AllOf(HasSubstr(path), HasSubstr("holds no certificate in PEM")));
    EXPECT_THAT(with_authority(path), AllOf(HasSubstr(path), HasSubstr("holds no certificate in PEM")));
    EXPECT_THAT(with_key(path), AllOf(HasSubstr(path), HasSubstr("holds no private key in PEM")));
  }
  EXPECT_THAT(with_key(files_.certificate), HasSubstr("holds no private key in PEM"));
  EXPECT_THAT(with_certificate(files_.key), HasSubstr("holds no certificate in PEM"));
}

TEST_F(TlsFiles, ThatAreDamaged) {
  std::string text = *read_file(files_.certificate, 1 << 20);
  text[text.size() / 2] = '!';
  EXPECT_THAT(with_certificate(write("damaged", text)), HasSubstr("certificate 1 in it cannot be read"));
  const std::string good = *read_file(files_.certificate, 1 << 20);
  EXPECT_THAT(with_authority(write("second", good + text)), HasSubstr("certificate 2 in it cannot be read")) << "not half of a list";
}

TEST_F(TlsFiles, WhoseKeyIsAnothers) {
  const test::Files other = authority_.issue("other");
  EXPECT_THAT(with_key(other.key),
              AllOf(HasSubstr(other.key + " is not the key of the certificate in " + files_.certificate), HasSubstr("CN=test")));
}

TEST_F(TlsFiles, WhoseKeyIsEncrypted) { EXPECT_THAT(with_key(authority_.encrypted_key()), HasSubstr("the key is encrypted")); }

TEST_F(TlsFiles, OfAClientAsWell) {
  const auto message = [](const TlsClientOptions& options) { return TlsContext::for_client(options).error().message; };
  EXPECT_THAT(message({.ca = authority_.path("none")}), HasSubstr("No such file"));
  EXPECT_THAT(message({.ca = files_.key}), HasSubstr("holds no certificate"));
  EXPECT_THAT(message({.ca = authority_.file(), .certificate = files_.certificate, .key = authority_.issue("other").key}),
              HasSubstr("is not the key"));
}

TEST_F(TlsFiles, AreWatched) {
  const std::shared_ptr<TlsContext> context = *TlsContext::for_server({.certificate = files_.certificate, .key = files_.key});
  metrics::Registry registry;
  TlsWatch watch({context, nullptr}, registry);
  const auto await = [&registry](const std::string& text) {
    while (registry.render().find(text) == std::string::npos) std::this_thread::sleep_for(10ms);
  };
  await("serin_tls_certificate_stale{file=\"" + files_.certificate + "\"} 0");
  const auto before = *context->expires();
  EXPECT_THAT(registry.render(), HasSubstr("serin_tls_certificate_expiry_seconds{file="));
  write("server.crt", "nothing");
  await("serin_tls_certificate_stale{file=\"" + files_.certificate + "\"} 1");
  EXPECT_EQ(context->expires(), before);
  authority_.issue("server", {.until_seconds = 7200});
  watch.refresh();
  await("serin_tls_certificate_stale{file=\"" + files_.certificate + "\"} 0");
  EXPECT_GT(context->expires(), before);
}

TEST_F(TlsFiles, OfOneCertificateAreStaleIfOneContextIs) {
  const std::string trusted = authority_.path("trusted.crt");
  std::filesystem::copy_file(authority_.file(), trusted);
  const std::shared_ptr<TlsContext> server = *TlsContext::for_server({.certificate = files_.certificate, .key = files_.key});
  const std::shared_ptr<TlsContext> client = *TlsContext::for_client({.ca = trusted, .certificate = files_.certificate, .key = files_.key});
  metrics::Registry registry;
  TlsWatch watch({client, server}, registry);
  write("trusted.crt", "nothing");
  const std::string stale = "serin_tls_certificate_stale{file=\"" + files_.certificate + "\"} 1";
  const auto is_stale = [&] { return registry.render().find(stale) != std::string::npos; };
  for (int looks = 0; looks < 3; looks = is_stale() ? looks + 1 : 0) std::this_thread::sleep_for(10ms);  // and stays so
}

}  // namespace
}  // namespace serin::net
