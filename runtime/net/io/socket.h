// socket.h: a TCP connection that never blocks, in the clear or with TLS, and addresses. For the .cc files of net only.
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

namespace serin::net {

/// An IPv4 or IPv6 address with its port.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  /// Numeric only, without brackets.
  static std::optional<Address> parse(const std::string& host, uint16_t port);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  uint16_t port() const;
  void set_port(uint16_t port);
  std::string host() const;
};

class TlsStream;

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
  /// Nothing more will be said.
  void shutdown_send();
  /// Before close(), where all has been said: with TLS the other side would otherwise think that something was cut off.
  void say_end();
  void set_no_delay();

  /// What one read or write did: bytes, or why none: EAGAIN, ECONNRESET ... For reads 0 bytes without an error is the end of the stream.
  struct Done {
    size_t bytes = 0;
    int error = 0;
    bool drained = false;  ///< of a read: nothing more is there until the next event
    bool held = false;     ///< with TLS: not all that was taken has been sent; write again, be it nothing, once there is room
  };
  Done read(std::span<char> room);
  /// One after the other in one system call.
  Done write(std::string_view first, std::string_view second = {});
  /// What an error of the two means.
  std::string describe(int error) const;

  /// From now on read() and write() go through it. Null: as before.
  void set_tls(std::unique_ptr<TlsStream> tls);
  TlsStream* tls() const { return tls_.get(); }

  /// 0 or EINPROGRESS: connected or under way (a write event tells).
  static int connect(const Address& address, Socket& socket);
  /// Of a connection that was under way: 0 where it stands.
  int connect_error() const;

 private:
  int descriptor_ = -1;
  std::unique_ptr<TlsStream> tls_;
};

// What a socket does in the clear; for TlsStream. Interrupted calls are repeated.
Socket::Done receive_from(int descriptor, std::span<char> room);
Socket::Done send_to(int descriptor, std::string_view bytes);

}  // namespace serin::net
