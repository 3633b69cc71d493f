// test_server.h: a Server with routes that the tests of this folder share.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/net/server.h"
#include "tests/runtime/net/raw_socket.h"

namespace serin::net::test {

/// /echo answers "METHOD path?query|body", /trailers too, with a trailer; /hold answers when release() is called; /big answers 8 MiB; /split tries to split its answer.
class TestServer {
 public:
  explicit TestServer(Limits limits = {}, size_t threads = 1, bool http2 = false, std::shared_ptr<const TlsContext> tls = nullptr,
                      std::shared_ptr<MemoryBudget> large_bodies = nullptr)
      : TestServer(threads, {.limits = limits, .large_bodies = std::move(large_bodies), .tls = std::move(tls), .http2 = http2}) {}
  TestServer(size_t threads, ServerOptions options) : loops_(threads) {
    options.name = "test";
    options.body_bytes_from = "so much do tests take";
    options.metrics = &registry;
    server_ = std::move(*Server::start(loops_, options,
                                       [this](Request request, Responder responder) { handle(std::move(request), std::move(responder)); }));
  }
  ~TestServer() { release(); }

  uint16_t port() const { return server_->port(); }
  Server& server() { return *server_; }
  RawSocket connect() { return RawSocket::connect(port()); }
  /// Sends all at once on a new connection, reads until the server closes.
  std::string exchange(std::string_view bytes) {
    RawSocket client = connect();
    client.send(bytes);
    return client.receive_all();
  }

  /// Returns once `count` requests are held.
  bool await_held(size_t count) {
    return await([&] { return held_.size() >= count; });
  }
  bool await_cancelled(size_t count) {
    return await([&] { return cancelled_ >= count; });
  }
  size_t seen() {
    const std::lock_guard lock(mutex_);
    return seen_.size();
  }
  const Request& request(size_t index) {
    const std::lock_guard lock(mutex_);
    return seen_[index];
  }
  bool first_held_is_cancelled() {
    const std::lock_guard lock(mutex_);
    return held_.front().cancelled();
  }
  void release() {
    std::vector<Responder> held;
    {
      const std::lock_guard lock(mutex_);
      held.swap(held_);
      shares_.clear();
    }
    for (Responder& responder : held) responder.send(text("released"));
  }

  metrics::Registry registry;

 private:
  static Response text(std::string body) {
    Response response;
    response.headers.add("content-type", "text/plain");
    response.body = std::move(body);
    return response;
  }
  template <class Condition>
  bool await(const Condition& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(kPatienceMs), condition);
  }
  void handle(Request&& taken, Responder responder) {
    std::unique_lock lock(mutex_);
    const Request& request = seen_.emplace_back(std::move(taken));
    MemoryBudget::Share until_answered = std::move(seen_.back().share);
    if (request.path == "/hold") {
      responder.on_cancel([this] {
        const std::lock_guard on_cancel_lock(mutex_);
        ++cancelled_;
        changed_.notify_all();
      });
      held_.push_back(std::move(responder));
      shares_.push_back(std::move(until_answered));
      changed_.notify_all();
      return;
    }
    lock.unlock();
    if (request.path == "/drop") return;  // the Responder answers for itself
    if (request.path == "/throw") throw std::runtime_error("thrown by a handler");
    if (request.path == "/big") return responder.send(text(std::string(size_t{8} << 20, 'x')));
    Response response = text(request.method + " " + request.path + (request.query.empty() ? "" : "?" + request.query) + "|" + request.body);
    if (request.path == "/trailers") response.trailers.add("grpc-status", "0");
    if (request.path == "/split") {
      response.headers.add("x-echo", "a\r\nset-cookie: b\n\rc");
      response.headers.add("bad name\r\nx", "y");
    }
    responder.send(std::move(response));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> seen_;
  std::vector<MemoryBudget::Share> shares_;  // of those that are held
  std::vector<Responder> held_;
  size_t cancelled_ = 0;
  Loops loops_;
  std::unique_ptr<Server> server_;
};

}  // namespace serin::net::test
