// tls_stream.h: one end of a TLS connection, over a descriptor that never blocks. What Socket is in the clear, this is with TLS: for Socket, and for those
// who make connections (tls_accept, connector). For the .cc files of net only.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/net/io/socket.h"
#include "runtime/net/tls.h"

namespace serin::net {

struct SslFree {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using SslPtr = std::unique_ptr<SSL, SslFree>;

class TlsStream {
 public:
  /// For messages: what the other side's certificate must be for, and whose certificates are believed.
  struct Expected {
    std::string host, authorities;
  };
  /// `http2`: a server offers it.
  TlsStream(SslPtr ssl, int descriptor, Expected expected, bool http2 = false);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  enum class Step : uint8_t {
    kDone,
    kWaits,  ///< for the next event, of either direction
    kFailed  ///< see failure(); the other side has been told why, where it can be
  };
  Step handshake();

  // After the handshake; as Socket's.
  Socket::Done read(std::span<char> room);
  Socket::Done write(std::string_view first, std::string_view second);
  /// close_notify: whoever reads to the end of the stream knows that it is the end.
  void say_end();

  /// Why the connection does not go on; empty: nothing is wrong with TLS.
  const std::string& failure() const { return failure_; }
  /// The other side spoke HTTP in the clear.
  bool heard_plain_http() const { return heard_plain_http_; }
  /// The other side ended before it said anything.
  bool heard_nothing() const { return received_ == 0; }
  /// It is the other side's certificate that is wrong, or that it has none.
  bool certificate_refused() const { return certificate_refused_; }
  bool agreed_on_http2() const;
  bool offers_http2() const { return http2_; }
  /// What the other side has shown and was found good; null: nothing.
  const std::shared_ptr<const PeerCertificate>& certificate() const { return certificate_; }

 private:
  friend struct TlsBio;
  friend struct TlsCallbacks;

  bool send_sealed();
  Socket::Done failed(int ssl_error);
  void note_failure(int ssl_error);
  Step look_at_certificate();

  const SslPtr ssl_;
  const int descriptor_;
  const Expected expected_;
  const bool http2_;
  std::string sealed_;        // ready to be sent
  size_t sealed_sent_ = 0;    // of it
  uint64_t received_ = 0;     // bytes
  bool more_ = false;         // the last read filled its room
  bool input_ended_ = false;  // without a word of TLS
  bool heard_plain_http_ = false, certificate_refused_ = false;
  int socket_error_ = 0;
  std::string failure_;
  std::shared_ptr<const PeerCertificate> certificate_;
};

}  // namespace serin::net
