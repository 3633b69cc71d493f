// h2_anything.cc: a real server on a socket of the file system's kind: no ports are used up, however many thousand connections there are.

#include "tests/fuzz/h2_anything.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/base/log.h"
#include "runtime/net/server.h"
#include "tests/fuzz/http_anything.h"

namespace serin::fuzz {
namespace {

constexpr int kPatienceMs = 10'000;

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

/// Answers what it is asked with more than fits into small windows, and with trailers.
class Probe final : public net::RequestHandler {
 public:
  explicit Probe(net::ServerStream& client) : client_(client) { trailers_.add("grpc-status", "0"); }

  void on_request(net::Head& head) override {
    pass_on_request(head);
    left_ = 0;
  }
  std::span<char> body_room(std::optional<uint64_t>) override { return room_; }
  void body_filled(size_t bytes) override { must(bytes <= room_.size(), "no more comes than there is room for"); }
  void on_progress(bool end) override {
    if (!end) return;
    client_.begin_answer({.status = 200, .headers = {}, .length = std::nullopt});
    client_.set_trailers(trailers_);
    left_ = kAnswer.size();
    on_writable();
  }
  void on_writable() override {
    if (left_ > 0) left_ -= client_.write(std::string_view(kAnswer).substr(kAnswer.size() - left_), /*last=*/true);
  }
  void on_gone() override { left_ = 0; }

 private:
  inline static const std::string kAnswer = std::string(100'000, 'x');

  net::ServerStream& client_;
  net::Headers trailers_;
  std::array<char, 1000> room_{};
  size_t left_ = 0;
};

struct Served {
  Served() {
    log::configure({.level = log::Level::kOff});
    address.sun_family = AF_UNIX;
    const std::string name = "serin-h2-" + std::to_string(::getpid());  // abstract: nothing to be removed
    name.copy(address.sun_path + 1, name.size());
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const int listening = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    must(::bind(listening, reinterpret_cast<const sockaddr*>(&address), size) == 0 && ::listen(listening, 16) == 0, "there is a socket");
    net::ServerOptions options{.listening = listening, .http2 = true};
    options.limits.body_bytes = 20'000;
    options.limits.streams = 8;
    server = *net::Server::start_streaming(loops, options, [](net::ServerStream& client) { return std::make_shared<Probe>(client); });
  }
  int connect() const {
    const int client = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(::connect(client, reinterpret_cast<const sockaddr*>(&address), size) == 0, "it accepts");
    return client;
  }

  sockaddr_un address{};
  socklen_t size = 0;
  net::Loops loops{1};
  std::unique_ptr<net::Server> server;
};

}  // namespace

void h2_anything(std::string_view frames) {
  static const Served& served = *new Served;
  std::string sent = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\x04\0\0\0\0\0", 9);
  sent += frames;
  std::string_view rest = sent;
  const int client = served.connect();
  std::array<char, 16384> room;
  for (ssize_t received = 1; received > 0;) {
    pollfd wait{client, static_cast<short>(rest.empty() ? POLLIN : POLLIN | POLLOUT), 0};
    const int ready = ::poll(&wait, 1, kPatienceMs);
    if (ready < 0 && errno == EINTR) continue;  // libFuzzer has an alarm of its own
    must(ready == 1, "the connection ends");
    if (!rest.empty() && wait.revents & (POLLOUT | POLLERR | POLLHUP)) {
      const ssize_t taken = ::send(client, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      rest.remove_prefix(taken > 0 ? static_cast<size_t>(taken) : errno == EAGAIN ? 0 : rest.size());
      if (rest.empty()) ::shutdown(client, SHUT_WR);
    }
    if (wait.revents & (POLLIN | POLLERR | POLLHUP)) received = ::recv(client, room.data(), room.size(), MSG_DONTWAIT);
    if (received < 0 && errno == EAGAIN) received = 1;
  }
  ::close(client);
}

}  // namespace serin::fuzz
