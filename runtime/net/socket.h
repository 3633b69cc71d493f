// socket.h: a TCP connection that never blocks, and addresses. For the .cc files of net only.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
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

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket() { close(); }

  int descriptor() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  void close();
  void shutdown_send() { ::shutdown(descriptor_, SHUT_WR); }
  void set_no_delay();

  /// What one read or write did: bytes, or why none: EAGAIN, ECONNRESET ... For reads 0 bytes without an error is the end of the stream.
  struct Done {
    size_t bytes = 0;
    int error = 0;
  };
  Done read(std::span<char> room);
  /// One after the other in one system call.
  Done write(std::string_view first, std::string_view second = {});

  /// 0 or EINPROGRESS: connected or under way (a write event tells).
  static int connect(const Address& address, Socket& socket);
  /// Of a connection that was under way: 0 where it stands.
  int connect_error() const;

 private:
  int descriptor_ = -1;
};

}  // namespace serin::net
