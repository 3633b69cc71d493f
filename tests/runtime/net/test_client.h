// test_client.h: a Client and a Session with one interface, which the tests of this folder share.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "runtime/net/client.h"
#include "runtime/net/loop.h"
#include "runtime/net/session.h"
#include "tests/runtime/net/raw_socket.h"

namespace serin::net::test {

inline constexpr std::chrono::milliseconds kPatience{kPatienceMs};

/// A Client on an io thread of its own, called from the test's thread.
class TestClient {
 public:
  /// With options.tls it speaks TLS.
  explicit TestClient(ClientOptions options = {}) : secure_(options.tls != nullptr) {
    on_loop([&] { client_ = std::make_unique<Client>(loops_.loop(0), options); });
  }
  ~TestClient() {
    on_loop([&] { client_.reset(); });
  }
  Result<Response> send(uint16_t port, Outgoing request, std::chrono::nanoseconds timeout = kPatience) {
    auto promise = std::make_shared<std::promise<Result<Response>>>();
    on_loop([&] {
      client_->send({"127.0.0.1", port, secure_}, std::move(request), timeout,
                    [promise](Result<Response> response) { promise->set_value(std::move(response)); });
    });
    return promise->get_future().get();
  }
  Result<Response> get(uint16_t port, std::string target = "/echo") { return send(port, {.target = std::move(target)}); }
  size_t open_connections() {
    size_t count = 0;
    on_loop([&] { count = client_->open_connections(); });
    return count;
  }
  Client& client() { return *client_; }
  void on_loop(const std::function<void()>& work) { loops_.post_and_wait(0, work); }

 private:
  const bool secure_;
  Loops loops_{1};
  std::unique_ptr<Client> client_;
};

/// A Session. With options.tls it speaks TLS.
class TestSession {
 public:
  explicit TestSession(ClientOptions options = {}) : secure_(options.tls != nullptr), session_(std::move(options)) {}
  Result<Response> send(uint16_t port, const Outgoing& request, std::chrono::nanoseconds timeout = kPatience) {
    return session_.send({"127.0.0.1", port, secure_}, request, timeout);
  }
  Result<Response> get(uint16_t port, std::string target = "/echo") { return send(port, {.target = std::move(target)}); }
  size_t open_connections() const { return session_.open_connections(); }
  Session& session() { return session_; }

 private:
  const bool secure_;
  Session session_;
};

/// Whose headers would be more than one, or another connection's, if they were written as they are.
inline Outgoing splitting_request() {
  Outgoing request{.target = "/echo"};
  request.headers.add("X-A", "1\r\nx-b: 2");
  request.headers.add("x-c\r\nx-d", "3");
  request.headers.add("transfer-encoding", "chunked");
  request.headers.add("connection", "x");
  request.headers.add("host", "other");
  return request;
}

}  // namespace serin::net::test
