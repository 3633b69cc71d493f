// client.h: HTTP client on the io threads, with kept connections, for the router, health checks and `serin load`.
//
//   net::Client client({.connect_timeout = 1s});
//   auto call = client.send(origin, request, deadline, [](Result<net::Response> response) { ... });    // on an io thread; calls back on the same
//   call.cancel();                                                                             // no callback any more; the connection is closed
//
// One Client per io thread (it is not thread-safe). A kept connection that turns out closed before a byte of the answer came is retried
// once on a fresh one. Answers are parsed as strictly as requests: a malformed one is kCorrupt and its connection never reused.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "runtime/net/http.h"
#include "runtime/net/tls.h"

namespace serin::net {

struct ClientOptions {
  std::chrono::milliseconds connect_timeout{1000};
  std::chrono::milliseconds idle_timeout{30'000};  ///< a kept connection older than this is closed
  size_t kept_per_origin = 256;
  size_t response_bytes = size_t{256} << 20;
  bool http2 = false;                     ///< for servers that speak gRPC; in the clear without asking (RFC 9113, 3.3)
  std::shared_ptr<const TlsContext> tls;  ///< for secure origins; null: there are none
  std::string server_name;                ///< what their certificates must be for, where neither `tls` says so nor the origin's host is it
};

struct Outgoing {
  std::string method = "GET";
  std::string target = "/";
  Headers headers;                          ///< Host, Content-Length, Connection are written by the client
  std::shared_ptr<const std::string> body;  ///< shared, so that a retry or a mirror costs no copy; null: none
};

class Call {
 public:
  struct State;
  Call() = default;
  explicit Call(std::shared_ptr<State> state) : state_(std::move(state)) {}
  /// Forgets the callback and closes the connection. Safe at any time, also after the end.
  void cancel();

 private:
  std::shared_ptr<State> state_;
};

class Client {
 public:
  struct State;
  explicit Client(ClientOptions options);
  ~Client();  ///< cancels what is under way
  using Callback = std::function<void(Result<Response>)>;
  /// Errors: kUnavailable (no connection), kIo (closed or reset before the end of the answer), kDeadlineExceeded, kCorrupt (not HTTP), kTooLarge,
  /// kOverloaded (no connection for want of descriptors, ports or memory here).
  Call send(const Origin& origin, Outgoing request, std::chrono::nanoseconds timeout, Callback callback);
  size_t open_connections() const;

 private:
  std::shared_ptr<State> state_;
};

/// For command lines: sends one request and waits, from a thread that is not an io thread. `tls`: for a secure origin.
Result<Response> fetch(const Origin& origin, Outgoing request, std::chrono::nanoseconds timeout,
                       std::shared_ptr<const TlsContext> tls = nullptr);

}  // namespace serin::net
