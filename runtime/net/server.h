// server.h: an HTTP server on the io threads: HTTP/1.1, optionally HTTP/2, with or without TLS (tls.h).
//
//   auto server = net::Server::start(loops, {.address = "127.0.0.1", .port = 0}, [](net::Request request, net::Responder responder) {
//     responder.send({.status = 200, .body = "hello"});      // now, or later from any thread
//   });
//   server.value()->port();
//
// The handler runs on the io thread that owns the connection and must not block. A message that is not strictly HTTP/1.1 never reaches the
// handler, so ambiguous framing is not passed on. The server answers it (400, 408, 413, 414, 415, 417, 431, 501, 505) and closes the
// connection. Methods other than GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS get 405. HEAD reaches the handler as HEAD, and the body of
// its answer is not sent.
//
// The Loops and all objects that the handler uses must outlive the Server. A Responder may outlive the Server, but not the Loops.
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

/// The way back to one client. Move-only; call send() once, from any thread. If destroyed before that, it answers 500.
class Responder {
 public:
  struct State;
  explicit Responder(std::shared_ptr<State> state) : state_(std::move(state)) {}
  Responder(Responder&&) noexcept = default;
  Responder& operator=(Responder&&) noexcept;
  ~Responder();

  /// Returns an empty answer in reused memory. On the connection's io thread only.
  Response blank();
  void send(Response response);
  /// The client hung up: no client reads the answer. May become true at any time.
  bool cancelled() const;
  /// Runs once on the connection's io thread if the client hangs up before send(). Set it from the handler only.
  void on_cancel(UniqueFunction<void()> work);

 private:
  std::shared_ptr<State> state_;
};

/// A request that the handler does not move from is valid until the handler returns; then its memory is reused.
using Handler = std::function<void(Request&&, Responder)>;

struct ServerOptions {
  std::string name = "http";  ///< for logs and metrics
  std::string address = "127.0.0.1";
  uint16_t port = 0;   ///< 0: any free port
  int listening = -1;  ///< a listening socket of a predecessor, which the server takes over; it replaces address and port
  Limits limits;
  std::string body_bytes_from;                 ///< origin of Limits::body_bytes, or how to raise it: shown to a client whose body is larger
  std::shared_ptr<MemoryBudget> large_bodies;  ///< budget for bodies within limits; null: none
  std::shared_ptr<const TlsContext> tls;       ///< null: without TLS
  /// An HTTP/2 connection older than this gets GOAWAY, so that its client reconnects, possibly to another server. Requests sent before that
  /// may run for the grace period. The age varies by a tenth, so that connections opened together do not end together. 0: no limit.
  std::chrono::milliseconds connection_age{0}, connection_age_grace{0};
  bool http2 = false;  ///< a connection that begins with the HTTP/2 preface (RFC 9113, 3.4) speaks HTTP/2, as gRPC does
  /// Whether the handler processes Content-Encoding itself. Otherwise a compressed request (content_coding.h) is decompressed before a
  /// Handler sees it, and an answer is compressed as its client requests. A request that cannot be decompressed gets 400, 413 or 415.
  bool encoded_bodies = false;
  /// serin_http_connections, serin_http_requests_total{listener,code}, serin_http_bad_requests_total{listener,reason}; null: none
  metrics::Registry* metrics = nullptr;
  /// Completes an answer that no handler gave, with headers that every answer of the service has. Called on io threads.
  std::function<void(Response&)> on_refusal;
  /// May change a handler's answer before it is sent. Called on io threads.
  std::function<void(Response&)> on_answer;
};

class Server {
 public:
  /// kInvalidArgument (not an address), kAlreadyExists (port in use), kPermissionDenied; the message names address and port.
  static Result<std::unique_ptr<Server>> start(Loops& loops, ServerOptions options, Handler handler);
  /// For services that do not need whole requests (stream.h), such as a proxy. The factory is called once for each connection, on its io
  /// thread.
  static Result<std::unique_ptr<Server>> start_streaming(Loops& loops, ServerOptions options, HandlerFactory factory);
  ~Server();  ///< stops accepting and closes every connection

  uint16_t port() const;
  /// The listening socket. A successor that accepts from a duplicate of it loses no waiting connection.
  int listening() const;
  /// Stops accepting, lets requests in progress end (answers have Connection: close), and closes connections that stay idle for a second.
  /// Returns true when none is left, false at the deadline.
  bool drain(std::chrono::milliseconds deadline);

 private:
  struct State;
  static Result<std::unique_ptr<Server>> start(std::unique_ptr<State> state);
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace serin::net
