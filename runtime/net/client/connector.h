// connector.h: makes one connection: resolves the name, tries its addresses one after the other, agrees on TLS where the origin is secure.
// For the .cc files of net only.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/net/client.h"
#include "runtime/net/io/loop_impl.h"
#include "runtime/net/io/socket.h"

namespace serin::net {

class Connector final : public Watcher, public std::enable_shared_from_this<Connector> {
 public:
  /// The socket, for Loop::hand_over(); or, where it is not open, why there is none: kUnavailable, or kOverloaded for want of descriptors, ports
  /// or memory here, which says nothing about the server. Not called out of start().
  using Callback = std::function<void(Socket socket, const Error& why_not)>;

  /// `options` must outlive this.
  Connector(Loops::Loop& loop, const ClientOptions& options);
  ~Connector() = default;
  void start(const Origin& origin, Callback callback);
  /// Forgets the callback.
  void cancel();

  void on_ready(uint32_t events) override;

 private:
  void try_next_address(const std::string& why_not_the_last);
  void connected();
  void shake_hands();
  void fail(Code code, std::string_view what);
  void end(Socket socket, const Error& why_not);
  void arm();

  Loops::Loop& loop_;
  const ClientOptions& options_;
  Origin origin_;
  Callback callback_;  // empty once called or cancelled
  Socket socket_;
  Deadline alarm_;
  std::vector<Address> addresses_;
  size_t next_address_ = 0;
};

}  // namespace serin::net
