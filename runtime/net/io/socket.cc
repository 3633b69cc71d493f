// socket.cc: system calls, interrupted ones repeated.

#include "runtime/net/io/socket.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/net/tls/tls_stream.h"

namespace serin::net {

std::optional<Address> Address::parse(const std::string& host, uint16_t port) {
  Address address;
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    address.size = sizeof v4;
  } else if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    address.size = sizeof v6;
  } else {
    return std::nullopt;
  }
  address.set_port(port);
  return address;
}

uint16_t Address::port() const {
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(storage).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

void Address::set_port(uint16_t port) {
  if (storage.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6&>(storage).sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in&>(storage).sin_port = htons(port);
}

std::string Address::host() const {
  char text[INET6_ADDRSTRLEN] = "";
  const void* bytes = storage.ss_family == AF_INET6 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr)
                                                    : &reinterpret_cast<const sockaddr_in&>(storage).sin_addr;
  ::inet_ntop(storage.ss_family, bytes, text, sizeof text);
  return text;
}

Socket::Socket() = default;
Socket::Socket(int descriptor) : descriptor_(descriptor) {}
Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), tls_(std::move(other.tls_)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(tls_, other.tls_);
  return *this;
}

Socket::~Socket() { close(); }

void Socket::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  tls_.reset();
}

void Socket::shutdown_send() {
  say_end();
  ::shutdown(descriptor_, SHUT_WR);
}

void Socket::say_end() {
  if (tls_) tls_->say_end();
}

void Socket::set_no_delay() {
  const int on = 1;
  ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void Socket::set_tls(std::unique_ptr<TlsStream> tls) { tls_ = std::move(tls); }

std::string Socket::describe(int error) const { return tls_ && !tls_->failure().empty() ? tls_->failure() : std::strerror(error); }

Socket::Done Socket::read(std::span<char> room) { return tls_ ? tls_->read(room) : receive_from(descriptor_, room); }

Socket::Done Socket::write(std::string_view first, std::string_view second) {
  return tls_ ? tls_->write(first, second) : send_to(descriptor_, first, second);
}

int Socket::listen(const Address& address, Socket& socket) {
  socket = Socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  const bool listens = socket.open() && ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                       ::bind(socket.descriptor(), address.get(), address.size) == 0 && ::listen(socket.descriptor(), kListenBacklog) == 0;
  return listens ? 0 : errno;
}

int Socket::connect(const Address& address, Socket& socket) {
  socket = Socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.open()) return errno;
  socket.set_no_delay();
  return ::connect(socket.descriptor_, address.get(), address.size) == 0 ? 0 : errno;
}

int Socket::connect_error() const {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace serin::net
