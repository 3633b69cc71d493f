// tls_accept.h: a TLS client of a server from accept to the end of the handshake; then it becomes a Connection. For the .cc files of net
// only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/net/deadline.h"
#include "runtime/net/io/io_loop.h"
#include "runtime/net/io/socket.h"
#include "runtime/net/message/listener.h"

namespace serin::net {

/// Everything runs on the io thread that owns the connection.
class TlsAccept final : public Watcher, public ServedConnection, public std::enable_shared_from_this<TlsAccept> {
 public:
  TlsAccept(std::shared_ptr<Listener> listener, IoLoop& loop, Socket socket, std::string peer);
  virtual ~TlsAccept() = default;

  void start();
  void on_ready(uint32_t events) override;
  /// It has a moment to become a connection, which then drains.
  void drain() override;
  void close() override;

 private:
  void shake_hands();
  void become_connection();
  void fail(std::string_view reason);
  void answer_in_the_clear();
  void linger();
  void expire(std::chrono::milliseconds after);

  const std::shared_ptr<Listener> listener_;
  Listener::PerLoop& here_;
  IoLoop& loop_;
  Socket socket_;
  const std::string peer_;
  Deadline deadline_;
  bool lingering_ = false, over_ = false;
};

}  // namespace serin::net
