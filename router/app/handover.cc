// handover.cc: the protocol of the hand-over, on a SOCK_SEQPACKET socket in the file system. Such a socket keeps message boundaries and
// reports the end of the other process.

#include "router/app/handover.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "runtime/net/io/socket.h"

namespace serin::router {
namespace {

constexpr std::string_view kSockets = "sockets";
constexpr int kFirstOfSystemd = 3;

bool make_address(const std::string& path, sockaddr_un& address) {
  address = {.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  return true;
}

Descriptor new_socket() { return Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

bool readable_in(int descriptor, std::chrono::seconds time) {
  pollfd wait{.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, static_cast<int>(std::chrono::milliseconds(time).count())) == 1;
}

int number_of(const char* variable) {
  const char* text = std::getenv(variable);
  int value = -1;
  if (text) std::from_chars(text, text + std::strlen(text), value);
  return value;
}

}  // namespace

Descriptor Descriptor::duplicate(int descriptor) { return Descriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)); }

Descriptor::~Descriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool is_bound_to(const Descriptor& socket, const std::string& address, uint16_t port) {
  if (!socket.open()) return false;
  net::Address bound;
  bound.size = sizeof bound.storage;
  if (::getsockname(socket.get(), bound.get(), &bound.size) != 0) return false;
  const auto asked = net::Address::parse(address == "localhost" ? "127.0.0.1" : address, port);
  return asked && bound.host() == asked->host() && (port == 0 || bound.port() == port);
}

Result<Descriptor> listen_at(const std::string& address, uint16_t port) {
  const auto at = net::Address::parse(address == "localhost" ? "127.0.0.1" : address, port);
  if (!at) return Error{Code::kInvalidArgument, fmt::format("'{}' is not an IP address", address)};
  net::Socket socket;
  if (const int failure = net::Socket::listen(*at, socket))
    return Error{Code::kUnavailable, fmt::format("cannot listen on {}:{}: {}", address, port, std::strerror(failure))};
  return Descriptor::duplicate(socket.descriptor());
}

ListeningSockets sockets_of_systemd() {
  ListeningSockets sockets;
  if (number_of("LISTEN_PID") != ::getpid()) return sockets;
  const int count = number_of("LISTEN_FDS");
  const auto take = [](int descriptor) {
    ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    return Descriptor(descriptor);
  };
  if (count >= 1) sockets.data = take(kFirstOfSystemd);
  if (count >= 2) sockets.admin = take(kFirstOfSystemd + 1);
  return sockets;
}

std::unique_ptr<HandoverPeer> HandoverPeer::connect(const std::string& path) {
  sockaddr_un address;
  Descriptor socket = new_socket();
  if (!socket.open() || !make_address(path, address) ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return nullptr;
  return std::make_unique<HandoverPeer>(std::move(socket));
}

bool HandoverPeer::send(std::string_view word) {
  return ::send(socket_.get(), word.data(), word.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(word.size());
}

bool HandoverPeer::await(std::string_view word, std::chrono::seconds time) {
  char text[32];
  if (!readable_in(socket_.get(), time)) return false;
  const ssize_t size = ::recv(socket_.get(), text, sizeof text, 0);
  return size > 0 && std::string_view(text, static_cast<size_t>(size)) == word;
}

bool HandoverPeer::send_sockets(const ListeningSockets& sockets) {
  const int descriptors[2] = {sockets.data.get(), sockets.admin.get()};
  iovec part{.iov_base = const_cast<char*>(kSockets.data()), .iov_len = kSockets.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptors);
  std::memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
  return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(kSockets.size());
}

Result<ListeningSockets> HandoverPeer::await_sockets(std::chrono::seconds time) {
  int descriptors[2];
  char text[32];
  iovec part{.iov_base = text, .iov_len = sizeof text};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (!readable_in(socket_.get(), time)) return Error{Code::kDeadlineExceeded, "the running router does not answer"};
  const ssize_t size = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* header = size > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof descriptors) || message.msg_flags & MSG_CTRUNC)
    return Error{Code::kCorrupt, "the running router handed over nothing"};
  std::memcpy(descriptors, CMSG_DATA(header), sizeof descriptors);
  return ListeningSockets{Descriptor(descriptors[0]), Descriptor(descriptors[1])};
}

Result<HandoverPoint> HandoverPoint::open(const std::string& path) {
  const auto refuse = [&path](std::string_view why) {
    return Error{Code::kIo, fmt::format("no successor can take over from this router: {}: {}", path, why)};
  };
  sockaddr_un address;
  if (!make_address(path, address)) return refuse("the path is too long for a socket");
  HandoverPoint point;
  point.socket_ = new_socket();
  ::unlink(path.c_str());  // of an earlier router: who has the store's lock is the only one
  const mode_t before = ::umask(0177);
  const bool bound = point.socket_.open() && ::bind(point.socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::umask(before);
  if (!bound || ::listen(point.socket_.get(), 4) != 0) return refuse(std::strerror(errno));
  return point;
}

std::unique_ptr<HandoverPeer> HandoverPoint::accept() {
  Descriptor socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  return socket.open() ? std::make_unique<HandoverPeer>(std::move(socket)) : nullptr;
}

}  // namespace serin::router
