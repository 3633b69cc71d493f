// tls.h: TLS 1.3 and 1.2, by OpenSSL: what a server shows and asks for, what a client believes.
//
//   SERIN_TRY(const auto tls, net::TlsContext::for_server({.certificate = "tls.crt", .key = "tls.key", .client_ca = "ca.crt"}));
//   net::Server::start(loops, {.tls = tls}, handler);                      // speaks nothing else from now on; HTTP/2 with who asks for it (ALPN)
//
//   SERIN_TRY(const auto tls, net::TlsContext::for_client({.ca = "ca.crt"}));
//   net::Client client({.tls = tls});                                      // for origins that are `secure`: https
//
// A server's certificate is always held against the host that was asked for, names and addresses alike (RFC 9525: the common name does not count).
// There is no renegotiation, no compression, no early data; suites have forward secrecy and authenticate (AEAD). Sessions are resumed by tickets, whose keys
// live as long as what was read from the files. Certificates are not looked up in lists of revoked ones: let them be short-lived.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/result.h"

namespace serin::net {

class TlsStream;

enum class TlsVersion : uint8_t { k12, k13 };

/// The same as texts.
struct TlsServerTexts {
  std::string certificate, key, client_ca;
};

/// Files are PEM.
struct TlsServerOptions {
  std::string certificate;  ///< the server's, behind it those that lead to its authority
  std::string key;          ///< not encrypted
  std::string client_ca;    ///< whose certificates clients must show; empty: none is asked for
  /// Where `certificate` is a file of another form that holds all three: reads it. Errors name it.
  std::function<Result<TlsServerTexts>(const std::string& path)> read;
  bool clients_may_omit = false;  ///< who shows none is let in, too; who shows another one is not
  TlsVersion least = TlsVersion::k13;
};

struct TlsClientOptions {
  std::string ca;                     ///< who may sign for servers; empty: whom the system believes
  std::string certificate, key;       ///< shown to a server that asks; empty: none
  std::string server_name;            ///< what the server's certificate must be for; empty: the host that is connected to
  bool insecure_skip_verify = false;  ///< any certificate will do: whoever is in between can read and change everything
  TlsVersion least = TlsVersion::k12;
};

/// Who is on the other side, by a certificate that was found good: "URI:spiffe://corp/ci", "DNS:ci.corp", "CN:ci", in this order.
struct PeerCertificate {
  std::vector<std::string> names;
};

/// Thread-safe.
class TlsContext {
 public:
  /// Errors name the file and what is wrong with it.
  static Result<std::shared_ptr<TlsContext>> for_server(TlsServerOptions options);
  static Result<std::shared_ptr<TlsContext>> for_client(TlsClientOptions options);
  ~TlsContext();

  /// Reads the files again where they have changed; what makes no sense together is refused whole, and what was read before stays in force. `at_once`: also
  /// where somebody may still be writing; otherwise a change counts once it was seen twice the same. Reads files: not for io threads.
  void refresh(bool at_once = false);
  /// The last reading was refused: the files are not what is in force.
  bool stale() const;
  /// When its own certificate, or one that leads to its authority, ends. Nothing: it has none.
  std::optional<std::chrono::system_clock::time_point> expires() const;
  /// The file that this is known by: its certificate, else its authorities, else empty.
  const std::string& name() const;

  // For the .cc files of net. Null: no memory.
  std::unique_ptr<TlsStream> accept(int descriptor, bool http2) const;
  std::unique_ptr<TlsStream> connect(int descriptor, const std::string& host, bool http2) const;

 private:
  struct Loaded;
  TlsContext() = default;
  static Result<std::shared_ptr<TlsContext>> open(std::shared_ptr<TlsContext> context);
  Result<std::shared_ptr<const Loaded>> load() const;
  std::vector<FileStamp> stamps() const;
  std::shared_ptr<const Loaded> loaded() const;

  // Constant after construction.
  std::optional<TlsServerOptions> server_;  // or it is a client's
  TlsClientOptions client_;

  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<const Loaded> loaded_;
  std::vector<FileStamp> tried_, seen_;  // of the last reading; of the last look
  bool stale_ = false;
};

}  // namespace serin::net
