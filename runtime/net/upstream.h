// upstream.h: persistent connections to one server.
//
//   net::Upstream upstream(loop, origin, options);                         // on that io thread, which owns it
//   net::ClientStream* stream = upstream.open(handler);                    // stream.h describes the calls to the handler
//   stream->begin_request({.method = "POST", .target = "/infer", .headers = headers, .length = body.size()});
//   sent = stream->write(body, /*last=*/true);
//
// The newest kept connection is used first, so that a pool that has become too large drains by idle_timeout. Over HTTP/2 many requests
// share one connection.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "runtime/net/client_options.h"
#include "runtime/net/http.h"
#include "runtime/net/loop.h"
#include "runtime/net/stream.h"

namespace serin::net {

class ClientConnection;
class H2Pool;

class Upstream {
 public:
  Upstream(Loop& loop, Origin origin, const ClientOptions& options);
  ~Upstream();  ///< ends requests in progress without a call to the handlers

  /// `fresh`: uses a new connection even if there are kept ones. `deadline`: for the whole answer; on_failure(kDeadlineExceeded).
  ClientStream& open(AnswerHandler& handler, std::chrono::steady_clock::time_point deadline, bool fresh = false);
  size_t connections() const;

 private:
  friend class ClientConnection;
  void keep(ClientConnection& connection);
  void drop(ClientConnection& connection);

  Loop& loop_;
  const Origin origin_;
  const ClientOptions options_;
  const std::string host_;  // authority() of the origin
  std::unordered_set<std::shared_ptr<ClientConnection>> all_;
  std::vector<ClientConnection*> kept_;
  const std::unique_ptr<H2Pool> http2_;  // all requests use it if the origin speaks HTTP/2
};

}  // namespace serin::net
