// server.h: an HTTP server on the io threads: HTTP/1.1, and HTTP/2 where the options say so; in the clear or with TLS (tls.h).
//
//   auto server = net::Server::start(loops, {.address = "127.0.0.1", .port = 0}, [](net::Request request, net::Responder responder) {
//     responder.send({.status = 200, .body = "hello"});      // now, or later from any thread
//   });
//   server.value()->port();
//
// The handler runs on the io thread that owns the connection and must not block. What is not strictly HTTP/1.1 is answered (400, 408, 413,
// 414, 415, 417, 431, 501, 505) and closed before the handler sees it: ambiguous framing is never passed on. So are methods other than GET,
// HEAD, POST, PUT, PATCH, DELETE and OPTIONS (405). HEAD reaches the handler as HEAD, and the body of its answer is not sent.
// The Loops and whatever the handler refers to must outlive the Server; a Responder may outlive it, but not the Loops.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/memory_budget.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"
#include "runtime/base/unique_function.h"
#include "runtime/net/http.h"
#include "runtime/net/loop.h"
#include "runtime/net/stream.h"

namespace serin::net {

/// The way back to one client. Move-only; send() once, from any thread. Destroyed unsent, it answers 500.
class Responder {
 public:
  struct State;
  explicit Responder(std::shared_ptr<State> state) : state_(std::move(state)) {}
  Responder(Responder&&) noexcept = default;
  Responder& operator=(Responder&&) noexcept;
  ~Responder();

  /// An answer to be filled, in memory that was used before. On the connection's io thread.
  Response blank();
  void send(Response response);
  /// The client hung up: nobody will read the answer. May turn true at any time.
  bool cancelled() const;
  /// Runs once on the connection's io thread if the client hangs up before send(). Set from the handler only.
  void on_cancel(UniqueFunction<void()> work);

 private:
  std::shared_ptr<State> state_;
};

/// A request that the handler does not take is valid until it returns, and its memory is used again.
using Handler = std::function<void(Request&&, Responder)>;

struct ServerOptions {
  std::string name = "http";  ///< for logs and metrics
  std::string address = "127.0.0.1";
  uint16_t port = 0;   ///< 0: a free one
  int listening = -1;  ///< a socket that listens already, of a predecessor: the server's from now on, in place of address and port
  Limits limits;
  std::string body_bytes_from;                 ///< where Limits::body_bytes is from, or how it is raised: told to who is over it
  std::shared_ptr<MemoryBudget> large_bodies;  ///< what bodies within limits have to share; null: nothing
  std::shared_ptr<const TlsContext> tls;       ///< null: in the clear
  /// A connection of HTTP/2 that is older is told to go (GOAWAY), so that its client comes again and may be sent to another server; what it asked until then it may
  /// wait for so long as the grace says. A tenth more or less, so that those that came together do not go together. 0: however old, however long.
  std::chrono::milliseconds connection_age{0}, connection_age_grace{0};
  bool http2 = false;  ///< a connection that begins with the preface of HTTP/2 (RFC 9113, 3.4) speaks it, as gRPC's do
  /// Whether Content-Encoding is the handler's business. Otherwise a request that is packed (content_coding.h) is unpacked before a Handler sees it, an
  /// answer packed as its client asks; what cannot be unpacked is 400, 413 or 415.
  bool encoded_bodies = false;
  /// serin_http_connections, serin_http_requests_total{listener,code}, serin_http_bad_requests_total{listener,reason}; null: none
  metrics::Registry* metrics = nullptr;
  /// Completes an answer that no handler gave, with headers that every answer of the service has. Called on io threads.
  std::function<void(Response&)> on_refusal;
  /// May change what a handler answered before it is sent. Called on io threads.
  std::function<void(Response&)> on_answer;
};

class Server {
 public:
  /// kInvalidArgument (not an address), kAlreadyExists (port in use), kPermissionDenied; the message names address and port.
  static Result<std::unique_ptr<Server>> start(Loops& loops, ServerOptions options, Handler handler);
  /// For who does not want whole requests (stream.h): a proxy. The factory is called once for each connection, on its io thread.
  static Result<std::unique_ptr<Server>> start_streaming(Loops& loops, ServerOptions options, HandlerFactory factory);
  ~Server();  ///< stops accepting and closes every connection

  uint16_t port() const;
  /// The listening socket. A successor that accepts from a duplicate of it loses nobody who waits to be accepted.
  int listening() const;
  /// Stops accepting, lets requests in progress end (answers say Connection: close), closes connections that stay idle for a second. Returns
  /// true when none is left, false at the deadline.
  bool drain(std::chrono::milliseconds deadline);

 private:
  struct State;
  static Result<std::unique_ptr<Server>> start(std::unique_ptr<State> state);
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace serin::net
