#include "tests/fuzz/local_socket.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "tests/fuzz/must.h"

namespace serin::fuzz {
namespace {

constexpr int kPatienceMs = 10'000;

}  // namespace

LocalSocket::LocalSocket(std::string_view name) {
  address_.sun_family = AF_UNIX;
  const std::string whole = "serin-" + std::string(name) + '-' + std::to_string(::getpid());  // abstract: nothing to be removed
  whole.copy(address_.sun_path + 1, whole.size());
  size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + whole.size());
  listening_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  must(::bind(listening_, reinterpret_cast<const sockaddr*>(&address_), size_) == 0 && ::listen(listening_, 16) == 0, "there is a socket");
}

std::string LocalSocket::converse(std::string_view sent, Then then, const std::function<bool(std::string_view)>& enough) const {
  const int client = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  must(::connect(client, reinterpret_cast<const sockaddr*>(&address_), size_) == 0, "it accepts");
  std::array<char, 16384> room;
  std::string answer;
  for (ssize_t received = 1; received > 0;) {
    pollfd wait{client, static_cast<short>(sent.empty() ? POLLIN : POLLIN | POLLOUT), 0};
    const int ready = ::poll(&wait, 1, kPatienceMs);
    if (ready < 0 && errno == EINTR) continue;  // libFuzzer has an alarm of its own
    must(ready == 1, "the connection ends");
    if (!sent.empty() && wait.revents & (POLLOUT | POLLERR | POLLHUP)) {
      const ssize_t taken = ::send(client, sent.data(), sent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      sent.remove_prefix(taken > 0 ? static_cast<size_t>(taken) : errno == EAGAIN ? 0 : sent.size());
      if (sent.empty() && then == Then::kClose) ::shutdown(client, SHUT_WR);
    }
    if (!(wait.revents & (POLLIN | POLLERR | POLLHUP))) continue;
    received = ::recv(client, room.data(), room.size(), MSG_DONTWAIT);
    if (received > 0) answer.append(room.data(), static_cast<size_t>(received));
    if (received < 0 && errno == EAGAIN) received = 1;
    if (enough && enough(answer)) break;
  }
  ::close(client);
  return answer;
}

}  // namespace serin::fuzz
