// tls_peer.h: the other side of a TLS connection, blocking, for tests that say what no client of ours would.
#pragma once

#include <openssl/ssl.h>

#include <csignal>
#include <memory>
#include <string>
#include <string_view>

#include "tests/runtime/net/raw_socket.h"
#include "tests/runtime/net/test_certificates.h"

namespace serin::net::test {

struct PeerOptions {
  Files files;                     ///< its certificate; none: it shows none
  int most_version = 0;            ///< 0: the newest
  std::string protocols;           ///< ALPN, each with its length before it
  SSL_SESSION* session = nullptr;  ///< to be resumed
};

class TlsPeer {
 public:
  static TlsPeer connect(uint16_t port, const PeerOptions& options = {}, int receive_buffer = 0) {
    TlsPeer peer(RawSocket::connect(port, receive_buffer), TLS_client_method(), options);
    if (!options.protocols.empty())
      SSL_set_alpn_protos(peer.ssl_.get(), reinterpret_cast<const unsigned char*>(options.protocols.data()),
                          static_cast<unsigned>(options.protocols.size()));
    if (options.session) SSL_set_session(peer.ssl_.get(), options.session);
    peer.agreed_ = SSL_connect(peer.ssl_.get()) == 1;
    return peer;
  }
  /// On a connection that somebody accepted.
  static TlsPeer accept(RawSocket socket, const PeerOptions& options) {
    TlsPeer peer(std::move(socket), TLS_server_method(), options);
    peer.agreed_ = SSL_accept(peer.ssl_.get()) == 1;
    return peer;
  }

  bool agreed() const { return agreed_; }
  SSL* ssl() { return ssl_.get(); }
  std::string version() { return SSL_get_version(ssl_.get()); }
  std::string protocol() {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &name, &size);
    return {reinterpret_cast<const char*>(name), size};
  }
  bool send(std::string_view bytes) { return bytes.empty() || SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0; }
  bool receive_some() {
    char bytes[16384];
    const int received = SSL_read(ssl_.get(), bytes, sizeof bytes);
    end_ = received > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), received);
    if (received > 0) ahead_.append(bytes, static_cast<size_t>(received));
    return received > 0;
  }
  std::string receive_all() {
    while (receive_some()) {
    }
    return std::exchange(ahead_, "");
  }
  /// As RawSocket's.
  std::string receive_answer() {
    size_t end;
    while ((end = ahead_.find("\r\n\r\n")) == std::string::npos)
      if (!receive_some()) return std::exchange(ahead_, "");
    end += 4;
    const size_t length = ahead_.find("content-length: ");
    if (length < end) end += static_cast<size_t>(std::stoul(ahead_.substr(length + 16)));
    while (ahead_.size() < end)
      if (!receive_some()) return std::exchange(ahead_, "");
    std::string answer = ahead_.substr(0, end);
    ahead_.erase(0, end);
    return answer;
  }
  /// How the stream ended, once receive_some() has said that it did: close_notify, or cut off.
  bool ended_properly() const { return end_ == SSL_ERROR_ZERO_RETURN; }
  void say_end() { SSL_shutdown(ssl_.get()); }
  RawSocket& socket() { return socket_; }

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  TlsPeer(RawSocket socket, const SSL_METHOD* method, const PeerOptions& options)
      : socket_(std::move(socket)), context_(SSL_CTX_new(method)) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without asking for silence
    if (options.most_version) SSL_CTX_set_max_proto_version(context_.get(), options.most_version);
    if (!options.files.certificate.empty()) {
      SSL_CTX_use_certificate_chain_file(context_.get(), options.files.certificate.c_str());
      SSL_CTX_use_PrivateKey_file(context_.get(), options.files.key.c_str(), SSL_FILETYPE_PEM);
    }
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), socket_.descriptor());
  }

  RawSocket socket_;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
  bool agreed_ = false;
  int end_ = 0;
  std::string ahead_;
};

}  // namespace serin::net::test
