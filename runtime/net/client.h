// client.h: an HTTP client on the io threads with persistent connections, for health checks, peers and `serin load`. See session.h for
// threads that may wait.
//
//   net::Client client(loop, {.connect_timeout = 1s});
//   auto call = client.send(origin, request, deadline, [](Result<net::Response> response) { ... });   // on that io thread; calls back there
//   call.cancel();                                                     // no callback any more; the connection is closed
//
// Use one Client for each io thread (it is not thread-safe). If a kept connection turns out to be closed before a byte of the answer came,
// the request is retried once on a new one. Answers are parsed as strictly as requests: a malformed one is kCorrupt, and its connection is
// never reused.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/net/client_options.h"
#include "runtime/net/http.h"
#include "runtime/net/loop.h"

namespace serin::net {

class Call {
 public:
  struct State;
  Call() = default;
  explicit Call(std::shared_ptr<State> state) : state_(std::move(state)) {}
  /// Drops the callback and closes the connection. Safe at any time, also after the end.
  void cancel();

 private:
  std::shared_ptr<State> state_;
};

class Client {
 public:
  struct State;
  Client(Loop& loop, ClientOptions options);
  ~Client();  ///< cancels requests in progress
  using Callback = std::function<void(Result<Response>)>;
  /// Errors: kUnavailable (no connection), kIo (closed or reset before the end of the answer), kDeadlineExceeded, kCorrupt (not HTTP),
  /// kTooLarge. kOverloaded: this machine lacks descriptors, ports or memory for a connection.
  Call send(const Origin& origin, Outgoing request, std::chrono::nanoseconds timeout, Callback callback);
  size_t open_connections() const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace serin::net
