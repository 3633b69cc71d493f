#include "runtime/net/client/connector.h"

#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/net/client/client_errors.h"
#include "runtime/net/io/resolver.h"
#include "runtime/net/tls/tls_stream.h"

namespace serin::net {
Connector::Connector(IoLoop& loop, const ClientOptions& options)
    : loop_(loop), options_(options), alarm_(this, [](void* self) {
        auto& connector = *static_cast<Connector*>(self);
        if (connector.socket_.tls() != nullptr) return connector.fail(Code::kUnavailable, "TLS: the handshake took too long");
        connector.try_next_address(connector.addresses_.empty() ? "the name was not resolved in time" : "connecting took too long");
      }) {}

/// For the name, for each address, and for the handshake.
void Connector::arm() { alarm_.set(loop_.deadlines(), std::chrono::steady_clock::now() + options_.connect_timeout); }

void Connector::start(const Origin& origin, Callback callback) {
  origin_ = origin;
  callback_ = std::move(callback);
  if (const auto address = Address::parse(origin.host, origin.port)) {
    addresses_.push_back(*address);
    return loop_.post([self = shared_from_this()] { self->try_next_address("no address"); });
  }
  arm();
  resolve(loop_, origin.host, origin.port, [self = shared_from_this()](Resolved resolved) {
    if (!self->callback_) return;
    self->addresses_ = std::move(resolved.addresses);
    self->try_next_address(resolved.error);
  });
}

void Connector::try_next_address(const std::string& why_not_the_last) {
  if (!callback_) return;
  if (next_address_ == addresses_.size()) return fail(Code::kUnavailable, why_not_the_last);
  arm();
  const int error = Socket::connect(addresses_[next_address_++], socket_);
  if (is_lack_of_ours(error)) return fail(Code::kOverloaded, std::strerror(error));
  if (error != 0 && error != EINPROGRESS) return try_next_address(std::strerror(error));
  if (!loop_.watch(socket_.descriptor(), *this)) return fail(Code::kOverloaded, "the socket cannot be watched");
}

void Connector::on_ready(uint32_t events) {
  if (!callback_) return;
  if (socket_.tls() != nullptr) return shake_hands();
  if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) return;
  if (const int error = socket_.connect_error()) return try_next_address(std::strerror(error));
  connected();
}

void Connector::connected() {
  if (!origin_.secure) return end(std::move(socket_), {});
  if (!options_.tls) return fail(Code::kInternal, "no certificate authority to trust is configured");
  const std::string& name = options_.server_name.empty() ? origin_.host : options_.server_name;
  socket_.set_tls(options_.tls->connect(socket_.descriptor(), name, options_.http2));
  if (socket_.tls() == nullptr) return fail(Code::kOverloaded, "TLS: no memory");
  arm();
  shake_hands();
}

void Connector::shake_hands() {
  TlsStream& tls = *socket_.tls();
  switch (tls.handshake()) {
    case TlsStream::Step::kWaits: return;
    case TlsStream::Step::kFailed: return fail(Code::kUnavailable, std::string(tls.failure()));
    case TlsStream::Step::kDone: break;
  }
  if (options_.http2 && !tls.agreed_on_http2())
    return fail(Code::kUnavailable, "TLS: the server does not offer HTTP/2 (ALPN h2), which gRPC needs");
  end(std::move(socket_), {});
}

void Connector::fail(Code code, std::string_view what) { end(Socket(), {code, std::string("cannot connect: ").append(what)}); }

void Connector::end(Socket socket, const Error& why_not) {
  const auto callback = std::exchange(callback_, nullptr);
  alarm_.leave();
  loop_.retire(shared_from_this());
  callback(std::move(socket), why_not);
}

void Connector::cancel() {
  if (!std::exchange(callback_, nullptr)) return;
  alarm_.leave();  // the thread that resolves the name may be the last to know this
  socket_.close();
  loop_.retire(shared_from_this());
}

}  // namespace serin::net
