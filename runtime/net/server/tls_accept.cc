// tls_accept.cc: a client that is slow has as long as for a head and holds a place among the connections, as every other does. One that fails is told why by
// an alert; what it still sends is read and thrown away for a moment, because a connection that is closed with bytes unread is reset, and the alert with it.

#include "runtime/net/server/tls_accept.h"

#include <algorithm>
#include <array>

#include "runtime/base/log.h"
#include "runtime/net/http1/connection.h"
#include "runtime/net/message/message_writer.h"
#include "runtime/net/message/served.h"
#include "runtime/net/tls/tls_stream.h"

namespace serin::net {
namespace {

constexpr std::chrono::milliseconds kLingerTime{2'000}, kDrainGrace{1'000};
constexpr std::chrono::seconds kBetweenComplaints{1};  // of one io thread, so that a flood of bad clients is none of lines

}  // namespace

TlsAccept::TlsAccept(std::shared_ptr<Listener> listener, IoLoop& loop, Socket socket, std::string peer)
    : listener_(std::move(listener)),
      here_(*listener_->per_loop[loop.index()]),
      loop_(loop),
      socket_(std::move(socket)),
      peer_(std::move(peer)),
      deadline_(this, [](void* self) {
        auto& accept = *static_cast<TlsAccept*>(self);
        if (!accept.lingering_) accept.listener_->count_bad_request(accept.here_, "tls_timeout");
        accept.close();
      }) {}

void TlsAccept::start() {
  socket_.set_no_delay();
  expire(listener_->options.limits.header_timeout);
  socket_.set_tls(listener_->options.tls->accept(socket_.descriptor(), listener_->options.http2));
  if (socket_.tls() == nullptr || !loop_.watch(socket_.descriptor(), *this)) return close();
  shake_hands();
}

void TlsAccept::on_ready(uint32_t) {
  if (over_) return;
  lingering_ ? linger() : shake_hands();
}

void TlsAccept::shake_hands() {
  const TlsStream& tls = *socket_.tls();
  switch (socket_.tls()->handshake()) {
    case TlsStream::Step::kDone: return become_connection();
    case TlsStream::Step::kWaits: return;
    case TlsStream::Step::kFailed: break;
  }
  if (tls.heard_nothing()) return close();  // somebody has looked whether the port is open
  if (tls.heard_plain_http()) return answer_in_the_clear();
  fail(tls.certificate_refused() ? "tls_client_certificate" : "tls_handshake");
}

/// The place among the server's connections is the other's from here on.
void TlsAccept::become_connection() {
  const auto self = shared_from_this();
  over_ = true;
  deadline_.clear();
  const auto connection = std::make_shared<Connection>(listener_, loop_, std::move(socket_), peer_);
  here_.connections.erase(self);
  here_.connections.insert(connection);
  loop_.retire(self);
  connection->start();
  if (listener_->draining.load(std::memory_order_relaxed)) connection->drain();
}

void TlsAccept::fail(std::string_view reason) {
  listener_->count_bad_request(here_, reason);
  if (loop_.now() - here_.complained > kBetweenComplaints) {
    here_.complained = loop_.now();
    log::info("{}: client {}: {}", listener_->options.name, peer_, socket_.tls()->failure());
  }
  socket_.set_tls(nullptr);
  socket_.shutdown_send();
  lingering_ = true;
  expire(kLingerTime);
  linger();
}

void TlsAccept::answer_in_the_clear() {
  const Response response = answer_to({400, "tls_plain_http", "this port speaks TLS: use https://"}, listener_->options);
  std::string text;
  write_answer_head({.status = response.status, .headers = response.headers, .length = response.body.size(), .close = true},
                    Persistence::kClose,
                    /*chunked=*/false, text);
  (void)send_to(socket_.descriptor(), text.append(response.body));
  fail("tls_plain_http");
}

void TlsAccept::linger() {
  std::array<char, 4096> room{};
  for (;;) {
    const Socket::Done done = socket_.read(room);
    if (done.error == EAGAIN) return;
    if (done.error != 0 || done.bytes == 0) return close();
  }
}

void TlsAccept::drain() { expire(std::min(listener_->options.limits.header_timeout, kDrainGrace)); }

void TlsAccept::close() {
  if (over_) return;
  over_ = true;
  deadline_.clear();
  socket_.close();
  const auto self = shared_from_this();
  here_.connections.erase(self);
  loop_.retire(self);
  listener_->connection_closed(here_);
}

void TlsAccept::expire(std::chrono::milliseconds after) { deadline_.set(loop_.deadlines(), loop_.now() + after); }

}  // namespace serin::net
