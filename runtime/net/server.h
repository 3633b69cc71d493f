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
#include <memory>

#include "runtime/base/result.h"
#include "runtime/net/loop.h"
#include "runtime/net/responder.h"
#include "runtime/net/server_options.h"
#include "runtime/net/stream.h"

namespace serin::net {

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
