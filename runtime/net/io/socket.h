// socket.h: a non-blocking TCP connection, with or without TLS, and addresses. For the .cc files of net only.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/net/system/transfer.h"

namespace serin::net {

/// An IPv4 or IPv6 address with its port.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  /// Accepts numeric addresses only, without brackets.
  static std::optional<Address> parse(const std::string& host, uint16_t port);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  uint16_t port() const;
  void set_port(uint16_t port);
  std::string host() const;
};

class TlsStream;

constexpr int kListenBacklog = 4096;

class Socket {
 public:
  Socket();
  explicit Socket(int descriptor);
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  int descriptor() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  void close();
  /// Ends the sending direction.
  void shutdown_send();
  /// Call it before close() when all is sent. With TLS, the peer would otherwise see a truncated connection.
  void say_end();
  void set_no_delay();

  using Done = Transfer;
  Done read(std::span<char> room);
  /// Writes both in one system call.
  Done write(std::string_view first, std::string_view second = {});
  /// Describes an error of read() or write().
  std::string describe(int error) const;

  /// From now on, read() and write() use TLS. Null: without TLS.
  void set_tls(std::unique_ptr<TlsStream> tls);
  TlsStream* tls() const { return tls_.get(); }

  /// 0: `socket` listens there; otherwise why not.
  static int listen(const Address& address, Socket& socket);
  /// 0 or EINPROGRESS: connected or in progress (a write event reports the end).
  static int connect(const Address& address, Socket& socket);
  /// The result of a connect in progress: 0 if it is connected.
  int connect_error() const;

 private:
  int descriptor_ = -1;
  std::unique_ptr<TlsStream> tls_;
};

}  // namespace serin::net
