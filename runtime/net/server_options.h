// server_options.h: settings of one server (server.h, grpc_server.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/memory_budget.h"
#include "runtime/base/metrics.h"
#include "runtime/net/http.h"
#include "runtime/net/tls.h"

namespace serin::net {

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

}  // namespace serin::net
