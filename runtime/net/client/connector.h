// connector.h: opens one connection: resolves the name, tries its addresses in turn, and negotiates TLS if the origin is secure.
//
// For the .cc files of net only.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/net/client_options.h"
#include "runtime/net/http.h"
#include "runtime/net/io/io_loop.h"
#include "runtime/net/io/socket.h"

namespace serin::net {

class Connector final : public Watcher, public std::enable_shared_from_this<Connector> {
 public:
  /// Receives the socket, for Loop::hand_over(). If the socket is not open, `why_not` is kUnavailable, or kOverloaded if this machine lacks
  /// descriptors, ports or memory, which says nothing about the server. It is never called during start().
  using Callback = std::function<void(Socket socket, const Error& why_not)>;

  /// `options` must outlive this.
  Connector(IoLoop& loop, const ClientOptions& options);
  ~Connector() = default;
  void start(const Origin& origin, Callback callback);
  /// Drops the callback.
  void cancel();

  void on_ready(uint32_t events) override;

 private:
  void try_next_address(const std::string& why_not_the_last);
  void connected();
  void shake_hands();
  void fail(Code code, std::string_view what);
  void end(Socket socket, const Error& why_not);
  void arm();

  IoLoop& loop_;
  const ClientOptions& options_;
  Origin origin_;
  Callback callback_;  // empty once called or cancelled
  Socket socket_;
  Deadline alarm_;
  std::vector<Address> addresses_;
  size_t next_address_ = 0;
};

}  // namespace serin::net
