#include "runtime/net/io/intake.h"

#include <sys/epoll.h>

#include <cerrno>

namespace serin::net {

void Intake::ready(uint32_t events) {
  if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) readable_ = true;
  if (events & EPOLLOUT && awaits_room_) readable_ = true;
  if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) ending_ = true;
}

Intake::Step Intake::read(Socket& socket, std::span<char> room, size_t& bytes) {
  bytes = 0;
  if (!readable_) return Step::kNothing;
  const Socket::Done done = socket.read(room);
  awaits_room_ = done.held;
  if (done.error == EAGAIN) {
    readable_ = false;
    return Step::kNothing;
  }
  if (done.error) {
    error_ = done.error;
    return Step::kFailed;
  }
  if (done.bytes == 0) return Step::kEnd;
  if (done.drained && !ending_) readable_ = false;
  bytes = done.bytes;
  return Step::kSome;
}

}  // namespace serin::net
