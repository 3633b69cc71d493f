// tls_context.cc: files -> SSL_CTX. What is read is immutable and shared: a connection keeps what it began with, the next one gets what is newest, and with a
// new SSL_CTX come new keys for tickets, so that no session outlives the authorities it was checked by.

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>

#include "runtime/base/log.h"
#include "runtime/net/tls.h"
#include "runtime/net/tls/tls_certificates.h"
#include "runtime/net/tls/tls_stream.h"

namespace serin::net {
namespace {

// Of 1.2; those of 1.3 are all as good.
constexpr const char* kSuites = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr long kTicketSeconds = 3600;
constexpr std::string_view kHttp1 = "\x08http/1.1", kHttp2 = "\x02h2", kBoth = "\x02h2\x08http/1.1";
constexpr std::string_view kSystem = "the authorities of this system";

struct ContextFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using ContextPtr = std::unique_ptr<SSL_CTX, ContextFree>;

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

/// What OpenSSL has against something it was given.
Error refused(std::string_view what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return {Code::kInvalidArgument, fmt::format("{}: {}", what, reason != nullptr ? reason : "OpenSSL refuses it")};
}

/// The protocol of ours that the client names, too. One that names only others would misunderstand whatever we say (RFC 7301, 3.2).
int choose_protocol(SSL* ssl, const unsigned char** chosen, unsigned char* size, const unsigned char* offered, unsigned offered_size,
                    void*) {
  const std::string_view wanted = static_cast<TlsStream*>(SSL_get_app_data(ssl))->offers_http2() ? kBoth : kHttp1;
  unsigned char* found = nullptr;
  const int result = SSL_select_next_proto(&found, size, bytes_of(wanted), static_cast<unsigned>(wanted.size()), offered, offered_size);
  *chosen = found;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

ContextPtr make_context(const SSL_METHOD* method, TlsVersion least) {
  ContextPtr context(SSL_CTX_new(method));
  if (!context) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(context.get(), least == TlsVersion::k13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(context.get(), kSuites);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context.get(), 1);                           // one system call for as many records as there are
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);  // the tickets hold what there is to know
  SSL_CTX_set_timeout(context.get(), kTicketSeconds);
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context.get()),
                              X509_V_FLAG_PARTIAL_CHAIN);  // who stands in the file is believed, root or not
  return context;
}

/// A text, and where it is from.
struct Pem {
  std::string text, from;
};

Result<Pem> read(const std::string& path) {
  SERIN_TRY(std::string text, read_pem(path));
  return Pem{std::move(text), path};
}

struct ServerPem {
  Pem certificate, key;
  std::optional<Pem> client_ca;
};

Result<ServerPem> read(const TlsServerOptions& options) {
  ServerPem pem;
  if (options.read) {
    SERIN_TRY(TlsServerTexts texts, options.read(options.certificate));
    pem.certificate = {std::move(texts.certificate), options.certificate};
    pem.key = {std::move(texts.key), options.certificate};
    if (!texts.client_ca.empty()) pem.client_ca = {std::move(texts.client_ca), options.certificate};
    return pem;
  }
  SERIN_TRY(pem.certificate, read(options.certificate));
  SERIN_TRY(pem.key, read(options.key));
  if (options.client_ca.empty()) return pem;
  SERIN_TRY(pem.client_ca, read(options.client_ca));
  return pem;
}

Status trust(SSL_CTX& context, const Pem& pem, bool name_them_to_clients) {
  SERIN_TRY(const auto authorities, parse_certificates(pem.text, pem.from));
  for (const X509Ptr& authority : authorities) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(&context), authority.get()) != 1) return refused(pem.from);
    if (name_them_to_clients) SSL_CTX_add_client_CA(&context, authority.get());
  }
  return {};
}

/// When the first of the chain ends.
Result<std::chrono::system_clock::time_point> show(SSL_CTX& context, const Pem& certificate, Pem key) {
  SERIN_TRY(const auto chain, parse_certificates(certificate.text, certificate.from));
  SERIN_TRY(const auto secret, parse_private_key(std::move(key.text), key.from));
  if (X509_check_private_key(chain.front().get(), secret.get()) != 1) {
    ERR_clear_error();
    return Error{Code::kInvalidArgument,
                 fmt::format("{} is not the key of the certificate in {} ({})", key.from, certificate.from, subject_of(*chain.front()))};
  }
  if (SSL_CTX_use_certificate(&context, chain.front().get()) != 1) return refused(certificate.from);
  if (SSL_CTX_use_PrivateKey(&context, secret.get()) != 1) return refused(key.from);
  auto ends = end_of(*chain.front());
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(&context, chain[i].get()) != 1) return refused(certificate.from);
    ends = std::min(ends, end_of(*chain[i]));
  }
  if (ends < std::chrono::system_clock::now()) log::warning("{}: the certificate, or one behind it, has expired", certificate.from);
  return ends;
}

}  // namespace

struct TlsContext::Loaded {
  ContextPtr context;
  std::optional<std::chrono::system_clock::time_point> expires;
};

TlsContext::~TlsContext() = default;

Result<std::shared_ptr<TlsContext>> TlsContext::for_server(TlsServerOptions options) {
  std::shared_ptr<TlsContext> context(new TlsContext);
  context->server_ = std::move(options);
  return open(std::move(context));
}

Result<std::shared_ptr<TlsContext>> TlsContext::for_client(TlsClientOptions options) {
  std::shared_ptr<TlsContext> context(new TlsContext);
  if (options.insecure_skip_verify) log::warning("TLS: certificates of servers are not verified, because the configuration says so");
  context->client_ = std::move(options);
  return open(std::move(context));
}

Result<std::shared_ptr<TlsContext>> TlsContext::open(std::shared_ptr<TlsContext> context) {
  const MutexLock lock(context->mutex_);
  context->tried_ = context->seen_ = context->stamps();  // before reading: what changes meanwhile is read again
  SERIN_TRY(context->loaded_, context->load());
  return context;
}

Result<std::shared_ptr<const TlsContext::Loaded>> TlsContext::load() const {
  auto loaded = std::make_shared<Loaded>();
  if (server_) {
    loaded->context = make_context(TLS_server_method(), server_->least);
    SSL_CTX& context = *loaded->context;
    SERIN_TRY(ServerPem pem, read(*server_));
    SERIN_TRY(loaded->expires, show(context, pem.certificate, std::move(pem.key)));
    constexpr std::string_view kName = "serin";  // of those that may resume what they begun here
    SSL_CTX_set_alpn_select_cb(&context, choose_protocol, nullptr);
    SSL_CTX_set_session_id_context(&context, bytes_of(kName), kName.size());
    if (!pem.client_ca) return loaded;
    SERIN_CHECK(trust(context, *pem.client_ca, /*name_them_to_clients=*/true));
    SSL_CTX_set_verify(&context, SSL_VERIFY_PEER | (server_->clients_may_omit ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT), nullptr);
    return loaded;
  }
  loaded->context = make_context(TLS_client_method(), client_.least);
  SSL_CTX& context = *loaded->context;
  if (!client_.certificate.empty()) {
    SERIN_TRY(const Pem certificate, read(client_.certificate));
    SERIN_TRY(Pem key, read(client_.key));
    SERIN_TRY(loaded->expires, show(context, certificate, std::move(key)));
  }
  if (!client_.ca.empty()) {
    SERIN_TRY(const Pem authorities, read(client_.ca));
    SERIN_CHECK(trust(context, authorities, /*name_them_to_clients=*/false));
  } else if (SSL_CTX_set_default_verify_paths(&context) != 1) {
    return refused(kSystem);
  }
  SSL_CTX_set_verify(&context, client_.insecure_skip_verify ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  return loaded;
}

std::vector<FileStamp> TlsContext::stamps() const {
  std::vector<FileStamp> stamps;
  const auto add = [&stamps](const std::string& path) {
    if (!path.empty()) stamps.push_back(FileStamp::of(path));
  };
  if (server_) {
    for (const std::string& path : {server_->certificate, server_->key, server_->client_ca}) add(path);
  } else {
    for (const std::string& path : {client_.ca, client_.certificate, client_.key}) add(path);
  }
  return stamps;
}

void TlsContext::refresh(bool at_once) {
  auto now = stamps();
  {
    const MutexLock lock(mutex_);
    const bool settled = at_once || now == seen_;
    seen_ = now;
    if (!settled || now == tried_) return;
    tried_ = std::move(now);
  }
  auto loaded = load();
  if (loaded)
    log::info("TLS: {} was read again", name());
  else
    log::error("TLS: {}; the files read before stay in force", loaded.error().message);
  const MutexLock lock(mutex_);
  stale_ = !loaded;
  if (loaded) loaded_ = *std::move(loaded);
}

bool TlsContext::stale() const {
  const MutexLock lock(mutex_);
  return stale_;
}

std::optional<std::chrono::system_clock::time_point> TlsContext::expires() const { return loaded()->expires; }

const std::string& TlsContext::name() const {
  if (server_) return server_->certificate;
  return client_.certificate.empty() ? client_.ca : client_.certificate;
}

std::shared_ptr<const TlsContext::Loaded> TlsContext::loaded() const {
  const MutexLock lock(mutex_);
  return loaded_;
}

std::unique_ptr<TlsStream> TlsContext::accept(int descriptor, bool http2) const {
  const auto now = loaded();
  SslPtr ssl(SSL_new(now->context.get()));
  if (!ssl) return nullptr;
  SSL_set_accept_state(ssl.get());
  const std::string& authorities = server_->read ? server_->certificate : server_->client_ca;
  return std::make_unique<TlsStream>(std::move(ssl), descriptor, TlsExpected{.host = "", .authorities = authorities}, http2);
}

std::unique_ptr<TlsStream> TlsContext::connect(int descriptor, const std::string& host, bool http2) const {
  auto [ssl, expected] = prepare(host, http2);
  if (!ssl) return nullptr;
  return std::make_unique<TlsStream>(std::move(ssl), descriptor, std::move(expected));
}

TlsPrepared TlsContext::prepare(const std::string& host, bool http2) const {
  const auto now = loaded();
  SslPtr ssl(SSL_new(now->context.get()));
  if (!ssl) return {};
  std::string name = client_.server_name.empty() ? host : client_.server_name;
  if (name.ends_with('.')) name.pop_back();  // which is for resolvers only
  SSL_set_connect_state(ssl.get());
  const std::string_view protocol = http2 ? kHttp2 : kHttp1;
  SSL_set_alpn_protos(ssl.get(), bytes_of(protocol), static_cast<unsigned>(protocol.size()));
  X509_VERIFY_PARAM* verify = SSL_get0_param(ssl.get());
  X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  if (X509_VERIFY_PARAM_set1_ip_asc(verify, name.c_str()) != 1) {  // not an address: a name, which the server may have several of
    ERR_clear_error();
    X509_VERIFY_PARAM_set1_host(verify, name.data(), name.size());
    SSL_set_tlsext_host_name(ssl.get(), name.c_str());
  }
  const std::string_view authorities = client_.ca.empty() ? kSystem : std::string_view(client_.ca);
  return {std::move(ssl), {.host = std::move(name), .authorities = std::string(authorities)}};
}

}  // namespace serin::net
