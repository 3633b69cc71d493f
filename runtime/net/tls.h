// tls.h: configures TLS 1.3 and 1.2 with OpenSSL: certificates to show, and authorities to trust.
//
//   SERIN_TRY(const auto tls, net::TlsContext::for_server({.certificate = "tls.crt", .key = "tls.key", .client_ca = "ca.crt"}));
//   net::Server::start(loops, {.tls = tls}, handler);                      // TLS only from now on; HTTP/2 if the client requests it (ALPN)
//
//   SERIN_TRY(const auto tls, net::TlsContext::for_client({.ca = "ca.crt"}));
//   net::Client client({.tls = tls});                                      // for origins that are `secure`: https
//
// A client always compares the server's certificate with the requested host, for names and addresses (RFC 9525: the common name does not
// count). Renegotiation, compression and early data are disabled. Cipher suites have forward secrecy and authentication (AEAD). Sessions
// are resumed by tickets, whose keys live as long as the loaded files. Revocation is not checked: use short-lived certificates.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/mutex.h"
#include "runtime/base/file.h"
#include "runtime/base/result.h"

namespace serin::net {

class TlsStream;
struct TlsPrepared;

enum class TlsVersion : uint8_t { k12, k13 };

/// The contents of the files.
struct TlsServerTexts {
  std::string certificate, key, client_ca;
};

/// Files are PEM.
struct TlsServerOptions {
  std::string certificate;  ///< the server's certificate, followed by those that lead to its authority
  std::string key;          ///< not encrypted
  std::string client_ca;    ///< authority of the certificates that clients must show; empty: none is requested
  /// Reads `certificate` if it is a file of another format that contains all three. Errors name the file.
  std::function<Result<TlsServerTexts>(const std::string& path)> read;
  bool clients_may_omit = false;  ///< a client without a certificate is accepted; a client with another one is not
  TlsVersion least = TlsVersion::k13;
};

struct TlsClientOptions {
  std::string ca;                     ///< authorities that may sign for servers; empty: those that the system trusts
  std::string certificate, key;       ///< shown to a server that requests it; empty: none
  std::string server_name;            ///< name in the server's certificate; empty: the host of the connection
  bool insecure_skip_verify = false;  ///< accepts any certificate: an attacker in between can read and change everything
  TlsVersion least = TlsVersion::k12;
};

/// The peer's identity by a verified certificate: "URI:spiffe://corp/ci", "DNS:ci.corp", "CN:ci", in this order.
struct PeerCertificate {
  std::vector<std::string> names;
};

/// Thread-safe.
class TlsContext {
 public:
  /// Errors name the file and the problem.
  static Result<std::shared_ptr<TlsContext>> for_server(TlsServerOptions options);
  static Result<std::shared_ptr<TlsContext>> for_client(TlsClientOptions options);
  ~TlsContext();

  /// Reads the files again if they have changed. Files that do not fit together are refused as a whole, and the previous ones stay in use.
  /// `at_once`: also reads files that may still be written; otherwise a change counts once it was seen unchanged twice. It reads files, so
  /// it must not run on io threads.
  void refresh(bool at_once = false);
  /// The last read was refused: the files differ from those in use.
  bool stale() const;
  /// When its own certificate, or one that leads to its authority, expires. Nothing: it has none.
  std::optional<std::chrono::system_clock::time_point> expires() const;
  /// The file that identifies it: its certificate, else its authorities, else empty.
  const std::string& name() const;

  // For the .cc files of net. Null: no memory.
  std::unique_ptr<TlsStream> accept(int descriptor, bool http2) const;
  std::unique_ptr<TlsStream> connect(int descriptor, const std::string& host, bool http2) const;
  TlsPrepared prepare(const std::string& host, bool http2) const;  ///< for connect(), and for Boost.Asio

 private:
  struct Loaded;
  TlsContext() = default;
  static Result<std::shared_ptr<TlsContext>> open(std::shared_ptr<TlsContext> context);
  Result<std::shared_ptr<const Loaded>> load() const;
  std::vector<FileStamp> stamps() const;
  std::shared_ptr<const Loaded> loaded() const;

  // Constant after construction.
  std::optional<TlsServerOptions> server_;  // absent for a client
  TlsClientOptions client_;

  mutable Mutex mutex_;
  std::shared_ptr<const Loaded> loaded_ SERIN_GUARDED_BY(mutex_);
  std::vector<FileStamp> tried_ SERIN_GUARDED_BY(mutex_);  // stamps at the last read
  std::vector<FileStamp> seen_ SERIN_GUARDED_BY(mutex_);   // and at the last check
  bool stale_ SERIN_GUARDED_BY(mutex_) = false;
};

}  // namespace serin::net
