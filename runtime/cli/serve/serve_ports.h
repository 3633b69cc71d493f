// serve_ports.h: opens the ports of `serin serve`: HTTP and gRPC for clients, metrics, and optionally one for admin requests.
//
//   SERIN_TRY(const auto ports, ServePorts::open(options, limits, tls, loops, frontend, access, registry));
//   ... ports->numbers() ... ports->drain(30s);
#pragma once

#include <chrono>
#include <memory>

#include "runtime/cli/ready_file.h"
#include "runtime/cli/serve/serve_limits.h"
#include "runtime/cli/serve/serve_options.h"
#include "runtime/serving/apis/dialects/all_apis.h"
#include "runtime/serving/apis/grpc/grpc_api.h"
#include "runtime/serving/apis/http_api.h"

namespace serin::cli {

class ServePorts {
 public:
  /// `frontend`, `access`, `loops` and `registry` must outlive it. Errors are those of net::Server::start().
  static Result<std::unique_ptr<ServePorts>> open(const ServeOptions& options, const ServeLimits& limits,
                                                  std::shared_ptr<const net::TlsContext> tls, net::Loops& loops,
                                                  serving::Frontend& frontend, serving::Access& access, metrics::Registry& registry);

  Ports numbers() const;
  /// Answers requests in progress and closes. Returns false if some were not answered by then.
  bool drain(std::chrono::milliseconds limit);

 private:
  ServePorts(serving::Frontend& frontend, serving::Access& access)
      : http_api_(frontend, access, serving::all_http_apis(frontend)), grpc_api_(serving::all_grpc_methods(frontend)) {}

  serving::HttpApi http_api_;
  serving::GrpcApi grpc_api_;
  std::unique_ptr<net::Server> http_, grpc_, metrics_, admin_;  // null: no such port
};

}  // namespace serin::cli
