// tls_stream.h: one end of a TLS connection over a non-blocking descriptor. For the .cc files of net only.
//
// Socket uses it in place of its own reads and writes, and tls_accept and connector use it for the handshake.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/net/system/transfer.h"
#include "runtime/net/tls.h"

namespace serin::net {

struct SslFree {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using SslPtr = std::unique_ptr<SSL, SslFree>;

/// For messages: the name in the peer's certificate, and the trusted authorities.
struct TlsExpected {
  std::string host, authorities;
};
/// The client's end of a connection that has not begun.
struct TlsPrepared {
  SslPtr ssl;  ///< null: no memory
  TlsExpected expected;
};
/// Explains an error of OpenSSL: "TLS: the other side refuses: certificate required".
std::string describe_tls_failure(unsigned long code);

class TlsStream {
 public:
  /// `http2`: a server offers it.
  TlsStream(SslPtr ssl, int descriptor, TlsExpected expected, bool http2 = false);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  enum class Step : uint8_t {
    kDone,
    kWaits,  ///< waits for the next event, in either direction
    kFailed  ///< see failure(); the peer has received the reason, if possible
  };
  Step handshake();

  // Valid after the handshake; like those of Socket.
  Transfer read(std::span<char> room);
  Transfer write(std::string_view first, std::string_view second);
  /// Sends close_notify, which marks the end of the stream for the peer.
  void say_end();

  /// The reason why the connection failed; empty: not a failure of TLS.
  const std::string& failure() const { return failure_; }
  /// The peer sent HTTP without TLS.
  bool heard_plain_http() const { return heard_plain_http_; }
  /// The peer ended before it sent anything.
  bool heard_nothing() const { return received_ == 0; }
  /// The peer's certificate is wrong or missing.
  bool certificate_refused() const { return certificate_refused_; }
  bool agreed_on_http2() const;
  bool offers_http2() const { return http2_; }
  /// The verified certificate of the peer; null: none.
  const std::shared_ptr<const PeerCertificate>& certificate() const { return certificate_; }

 private:
  friend struct TlsBio;
  friend struct TlsCallbacks;

  bool send_sealed();
  Transfer failed(int ssl_error);
  void note_failure(int ssl_error);
  Step look_at_certificate();

  const SslPtr ssl_;
  const int descriptor_;
  const TlsExpected expected_;
  const bool http2_;
  std::string sealed_;        // ready to be sent
  size_t sealed_sent_ = 0;    // bytes sent of sealed_
  uint64_t received_ = 0;     // bytes
  bool more_ = false;         // the last read filled its room
  bool input_ended_ = false;  // the peer ended without close_notify
  bool heard_plain_http_ = false, certificate_refused_ = false;
  int socket_error_ = 0;
  std::string failure_;
  std::shared_ptr<const PeerCertificate> certificate_;
};

}  // namespace serin::net
