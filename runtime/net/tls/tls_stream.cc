// tls_stream.cc: OpenSSL between two buffers of its own: it reads from the socket through a BIO of ours, and what it writes is collected and sent at the end of
// each call. So it never waits for room: SSL_write() takes all that it is given, a large body goes out in one system call for four records, and a record that
// was begun cannot be torn by a caller who says something else the next time. What the socket does not take waits here, at most kMostSealed of it; a connection
// that has nothing waiting holds no memory for it.
//
// A stream that ends without close_notify was cut off (RFC 8446, 6.1): an error, never an end.

#include "runtime/net/tls/tls_stream.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>

#include "runtime/net/tls/tls_certificates.h"

namespace serin::net {
namespace {

constexpr size_t kMostSealed = 64 * 1024;  // of a body, in one call

/// For who has nothing waiting: one for each thread.
std::string& spare_buffer() {
  thread_local std::string spare;
  return spare;
}

}  // namespace

std::string describe_tls_failure(unsigned long code) {
  switch (ERR_GET_REASON(code)) {
    case SSL_R_UNEXPECTED_EOF_WHILE_READING: return "the connection was cut off";
    case SSL_R_HTTP_REQUEST: return "TLS: the other side speaks HTTP without TLS";
    case SSL_R_WRONG_VERSION_NUMBER: return "TLS: the other side does not speak it";
    default: break;
  }
  const char* known = ERR_reason_error_string(code);
  const std::string_view reason = known != nullptr ? known : "an unknown error";
  constexpr std::string_view kAlert = " alert ";  // "tlsv13 alert certificate required"
  const size_t alert = reason.find(kAlert);
  if (alert == std::string_view::npos) return fmt::format("TLS: {}", reason);
  return fmt::format("TLS: the other side refuses: {}", reason.substr(alert + kAlert.size()));
}

/// How OpenSSL reads and writes.
struct TlsBio {
  static TlsStream& stream(BIO* bio) { return *static_cast<TlsStream*>(BIO_get_data(bio)); }

  static int write(BIO* bio, const char* bytes, int size) {
    std::string& sealed = stream(bio).sealed_;
    if (sealed.empty() && sealed.capacity() < spare_buffer().capacity()) sealed.swap(spare_buffer());
    sealed.append(bytes, static_cast<size_t>(size));
    return size;
  }
  static int read(BIO* bio, char* room, int size) {
    TlsStream& self = stream(bio);
    BIO_clear_retry_flags(bio);
    const Transfer done = receive_from(self.descriptor_, {room, static_cast<size_t>(size)});
    self.more_ = done.error == 0 && !done.drained;
    self.received_ += done.bytes;
    if (done.error == EAGAIN) BIO_set_retry_read(bio);
    if (done.error != 0) {
      if (done.error != EAGAIN) self.socket_error_ = done.error;
      return -1;
    }
    self.input_ended_ = done.bytes == 0;
    return static_cast<int>(done.bytes);
  }
  static long control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_EOF) return stream(bio).input_ended_ ? 1 : 0;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }
  static BIO_METHOD* method() {
    static BIO_METHOD* const made = [] {
      BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "serin");
      BIO_meth_set_write(method, write);
      BIO_meth_set_read(method, read);
      BIO_meth_set_ctrl(method, control);
      BIO_meth_set_create(method, [](BIO* bio) {
        BIO_set_init(bio, 1);
        return 1;
      });
      return method;
    }();
    return made;
  }
};

struct TlsCallbacks {
  /// Called for each certificate of the chain that is wrong; OpenSSL does not say afterwards which one it was.
  static int verify(int good, X509_STORE_CTX* store) {
    if (good == 1) return good;
    const auto* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    auto& stream = *static_cast<TlsStream*>(SSL_get_app_data(ssl));
    stream.certificate_refused_ = true;
    if (stream.failure_.empty()) stream.failure_ = describe_certificate_error(*store, stream.expected_.host, stream.expected_.authorities);
    return good;
  }
};

TlsStream::TlsStream(SslPtr ssl, int descriptor, TlsExpected expected, bool http2)
    : ssl_(std::move(ssl)), descriptor_(descriptor), expected_(std::move(expected)), http2_(http2) {
  BIO* bio = BIO_new(TlsBio::method());
  if (bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, this);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_app_data(ssl_.get(), this);
  if (SSL_get_verify_mode(ssl_.get()) != SSL_VERIFY_NONE)
    SSL_set_verify(ssl_.get(), SSL_get_verify_mode(ssl_.get()), &TlsCallbacks::verify);
}

TlsStream::~TlsStream() = default;

TlsStream::Step TlsStream::handshake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_.get());
  const int error = done == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), done);
  if (error != SSL_ERROR_NONE && error != SSL_ERROR_WANT_READ) note_failure(error);
  const bool sent = send_sealed();
  if (!failure_.empty()) return Step::kFailed;
  if (error != SSL_ERROR_NONE || !sent) return Step::kWaits;
  return look_at_certificate();
}

/// A session that is resumed does not show its certificate again, so nobody has looked at when that ends.
TlsStream::Step TlsStream::look_at_certificate() {
  X509* shown = SSL_get0_peer_certificate(ssl_.get());
  if (shown == nullptr || SSL_get_verify_mode(ssl_.get()) == SSL_VERIFY_NONE) return Step::kDone;
  if (X509_cmp_current_time(X509_get0_notAfter(shown)) > 0) {
    certificate_ = std::make_shared<const PeerCertificate>(PeerCertificate{.names = names_of(*shown)});
    return Step::kDone;
  }
  certificate_refused_ = true;
  failure_ = fmt::format("TLS: the certificate of the session that is resumed ({}) has expired", subject_of(*shown));
  return Step::kFailed;
}

Transfer TlsStream::read(std::span<char> room) {
  ERR_clear_error();
  size_t bytes = 0;
  const int done = SSL_read_ex(ssl_.get(), room.data(), room.size(), &bytes);
  const int error = done == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), done);
  if (error != SSL_ERROR_NONE && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_ZERO_RETURN) return failed(error);
  const bool sent = send_sealed();  // alerts, answers to changes of keys
  if (error == SSL_ERROR_WANT_READ) return {.error = EAGAIN, .held = !sent};
  return {.bytes = bytes, .drained = !more_ && SSL_has_pending(ssl_.get()) == 0, .held = !sent};
}

Transfer TlsStream::write(std::string_view first, std::string_view second) {
  if (!send_sealed()) return {.error = EAGAIN, .held = true};
  size_t taken = 0;
  for (std::string_view part : {first, second}) {
    part = part.substr(0, kMostSealed - taken);
    if (part.empty()) continue;
    ERR_clear_error();
    size_t bytes = 0;
    const int done = SSL_write_ex(ssl_.get(), part.data(), part.size(), &bytes);
    if (done != 1) return failed(SSL_get_error(ssl_.get(), done));
    taken += bytes;
  }
  const bool sent = send_sealed();
  if (socket_error_ != 0) return {.error = socket_error_};
  return {.bytes = taken, .held = !sent};
}

void TlsStream::say_end() {
  if (!failure_.empty() || socket_error_ != 0) return;
  ERR_clear_error();
  if (SSL_is_init_finished(ssl_.get()) == 1) (void)SSL_shutdown(ssl_.get());
  (void)send_sealed();
}

/// False: some of it waits for room.
bool TlsStream::send_sealed() {
  while (sealed_sent_ < sealed_.size() && socket_error_ == 0) {
    const Transfer done = send_to(descriptor_, std::string_view(sealed_).substr(sealed_sent_));
    if (done.error == EAGAIN) return false;
    socket_error_ = done.error;
    sealed_sent_ += done.bytes;
  }
  sealed_.clear();
  sealed_sent_ = 0;
  if (sealed_.capacity() > spare_buffer().capacity()) sealed_.swap(spare_buffer());
  std::string().swap(sealed_);
  return true;
}

Transfer TlsStream::failed(int ssl_error) {
  note_failure(ssl_error);
  (void)send_sealed();  // the alert that says why
  return {.error = socket_error_ != 0 ? socket_error_ : EPROTO};
}

void TlsStream::note_failure(int ssl_error) {
  const unsigned long code = ERR_peek_error();
  const int reason = ERR_GET_REASON(code);
  if (!failure_.empty()) return;  // a certificate that was refused: more was known there
  if (ssl_error == SSL_ERROR_SYSCALL && socket_error_ != 0) {
    failure_ = std::strerror(socket_error_);
  } else if (input_ended_) {
    failure_ = "the connection was cut off";
  } else {
    heard_plain_http_ = reason == SSL_R_HTTP_REQUEST;
    certificate_refused_ = reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE;
    failure_ = describe_tls_failure(code);
  }
}

bool TlsStream::agreed_on_http2() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return std::string_view(reinterpret_cast<const char*>(name), size) == "h2";
}

}  // namespace serin::net
