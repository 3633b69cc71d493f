// transfer.cc: system calls, interrupted ones repeated.

#include "runtime/net/system/transfer.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace serin::net {
namespace {

// The C library's recv() and send() let the thread be cancelled while they wait, and take longer for that than for a small message. Nobody waits or is
// cancelled here. Sanitizers see what their own versions of the two tell them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
ssize_t receive_now(int descriptor, void* room, size_t size) { return ::recv(descriptor, room, size, 0); }
ssize_t send_now(int descriptor, std::string_view bytes) { return ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
#else
ssize_t receive_now(int descriptor, void* room, size_t size) {
  return ::syscall(SYS_recvfrom, descriptor, room, size, 0, nullptr, nullptr);
}
ssize_t send_now(int descriptor, std::string_view bytes) {
  return ::syscall(SYS_sendto, descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL, nullptr, 0);
}
#endif

}  // namespace

Transfer receive_from(int descriptor, std::span<char> room) {
  for (;;) {
    const ssize_t bytes = receive_now(descriptor, room.data(), room.size());
    if (bytes >= 0) return {.bytes = static_cast<size_t>(bytes), .drained = static_cast<size_t>(bytes) < room.size()};
    if (errno != EINTR) return {.error = errno};
  }
}

Transfer send_to(int descriptor, std::string_view bytes) {
  for (;;) {
    const ssize_t sent = send_now(descriptor, bytes);
    if (sent >= 0) return {.bytes = static_cast<size_t>(sent)};
    if (errno != EINTR) return {.error = errno};
  }
}

Transfer send_to(int descriptor, std::string_view first, std::string_view second) {
  if (second.empty()) return send_to(descriptor, first);
  if (first.empty()) return send_to(descriptor, second);
  iovec parts[2] = {{const_cast<char*>(first.data()), first.size()}, {const_cast<char*>(second.data()), second.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  for (;;) {
    const ssize_t bytes = ::sendmsg(descriptor, &message, MSG_NOSIGNAL);
    if (bytes >= 0) return {.bytes = static_cast<size_t>(bytes)};
    if (errno != EINTR) return {.error = errno};
  }
}

}  // namespace serin::net
