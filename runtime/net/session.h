// session.h: an HTTP/1.1 client for threads that may wait: etcd, webhooks, Prometheus, the admin API. Boost.Beast over Boost.Asio.
//
//   net::Session session({.connect_timeout = 1s, .tls = tls});
//   auto response = session.send(origin, {.method = "POST", .target = "/v3/kv/range", .body = body}, 300ms);
//
// Each call runs the event loop of its own connection, so no other thread is needed. Connections are kept. If a kept one turns out to be
// closed before a byte of the answer came, the request is sent once more on a new one. An io thread must not wait: it uses client.h.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "kernels/mutex.h"
#include "runtime/base/result.h"
#include "runtime/net/client_options.h"
#include "runtime/net/http.h"

namespace serin::net {

/// Thread-safe. The option `http2` is ignored.
class Session {
 public:
  explicit Session(ClientOptions options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Errors: kUnavailable (no connection), kIo (closed or reset before the end of the answer), kDeadlineExceeded, kCorrupt (not HTTP),
  /// kTooLarge, kInvalidArgument (the method or target), kCancelled (stop()). kOverloaded: this machine lacks descriptors, ports or memory.
  Result<Response> send(const Origin& origin, const Outgoing& request, std::chrono::nanoseconds timeout);
  /// The same for an answer that is used while it arrives. `use` gets its status and the next bytes of its body, on the calling thread.
  /// Returns the answer without its body, once that has ended.
  using Use = std::function<void(int status, std::string_view bytes)>;
  Result<Response> receive(const Origin& origin, const Outgoing& request, std::chrono::nanoseconds timeout, const Use& use);
  /// Ends all calls, now and later, with kCancelled. Callable from any thread.
  void stop();
  size_t open_connections() const;

 private:
  struct Connection;
  struct Exchange;

  Status run(Exchange& exchange);
  Status run_once(Exchange& exchange, bool fresh);
  std::unique_ptr<Connection> take(const Origin& origin);
  void keep(std::unique_ptr<Connection> connection);

  const ClientOptions options_;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Connection>> kept_ SERIN_GUARDED_BY(mutex_);
  std::unordered_set<Connection*> active_ SERIN_GUARDED_BY(mutex_);
  bool stopped_ SERIN_GUARDED_BY(mutex_) = false;
};

/// Sends one request and waits.
Result<Response> fetch(const Origin& origin, const Outgoing& request, std::chrono::nanoseconds timeout,
                       std::shared_ptr<const TlsContext> tls = nullptr);

}  // namespace serin::net
