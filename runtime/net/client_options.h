// client_options.h: settings of connections to other servers, for client.h and upstream.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "runtime/net/tls.h"

namespace serin::net {

struct ClientOptions {
  std::chrono::milliseconds connect_timeout{1000};
  std::chrono::milliseconds idle_timeout{30'000};  ///< a kept connection older than this is closed
  std::chrono::milliseconds silence_timeout{0};    ///< longest wait for the next bytes of an answer; 0: the call's own. Session only
  size_t kept_per_origin = 256;
  size_t response_bytes = size_t{256} << 20;
  bool http2 = false;                     ///< for servers that speak gRPC; without TLS, HTTP/2 with prior knowledge (RFC 9113, 3.3)
  std::shared_ptr<const TlsContext> tls;  ///< for secure origins; null: there are none
  std::string server_name;                ///< name in their certificates, unless `tls` sets it; empty: the origin's host
};

}  // namespace serin::net
