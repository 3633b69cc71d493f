// serve_ports.h: the ports of `serin serve`: HTTP and gRPC for clients, metrics, and, where asked for, one for orders to the server.
//
//   SERIN_TRY(const auto ports, ServePorts::open(options, limits, tls, loops, frontend, access, registry));
//   ... ports->numbers() ... ports->drain(30s);
#pragma once

#include <chrono>
#include <memory>

#include "runtime/cli/commands.h"
#include "runtime/cli/ready_file.h"
#include "runtime/cli/serve/serve_limits.h"
#include "runtime/serving/apis/grpc/grpc_api.h"
#include "runtime/serving/apis/http_api.h"

namespace serin::cli {

class ServePorts {
 public:
  /// `frontend`, `access`, `loops` and `registry` outlive it. Errors as net::Server::start().
  static Result<std::unique_ptr<ServePorts>> open(const ServeOptions& options, const ServeLimits& limits,
                                                  std::shared_ptr<const net::TlsContext> tls, net::Loops& loops,
                                                  serving::Frontend& frontend, serving::Access& access, metrics::Registry& registry);

  Ports numbers() const;
  /// Answers what is under way and closes. False where some of it was not done by then.
  bool drain(std::chrono::milliseconds limit);

 private:
  ServePorts(serving::Frontend& frontend, serving::Access& access) : http_api_(frontend, access), grpc_api_(frontend) {}

  serving::HttpApi http_api_;
  serving::GrpcApi grpc_api_;
  std::unique_ptr<net::Server> http_, grpc_, metrics_, admin_;  // null: there is no such port
};

}  // namespace serin::cli
