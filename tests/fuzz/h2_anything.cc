#include "tests/fuzz/h2_anything.h"

#include <array>
#include <string>

#include "runtime/base/log.h"
#include "runtime/net/server.h"
#include "tests/fuzz/http_anything.h"
#include "tests/fuzz/local_socket.h"
#include "tests/fuzz/must.h"

namespace serin::fuzz {
namespace {

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
    net::ServerOptions options{.listening = socket.listening(), .http2 = true};
    options.limits.body_bytes = 20'000;
    options.limits.streams = 8;
    server = *net::Server::start_streaming(loops, options, [](net::ServerStream& client) { return std::make_shared<Probe>(client); });
  }

  LocalSocket socket{"h2"};
  net::Loops loops{1};
  std::unique_ptr<net::Server> server;
};

}  // namespace

void h2_anything(std::string_view frames) {
  static const Served& served = *new Served;
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\x04\0\0\0\0\0", 9);
  (void)served.socket.converse(preface + std::string(frames), LocalSocket::Then::kClose);
}

}  // namespace serin::fuzz
