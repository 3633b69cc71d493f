// external_scaler.h: the service externalscaler.ExternalScaler, which KEDA asks for the load of a version.
//
//   ExternalScaler scaler(proxy.load_source());
//   net::start_grpc_server(loops, options, [&](std::string_view path) { return scaler.method(path); });
//
// One version is one trigger of a ScaledObject, whose metadata are in every question (scaler_trigger.h). So the router keeps no list of them.
// StreamIsActive looks ten times a second, and reports a change at once. It repeats its answer every ten seconds, because KEDA drops an
// answer that comes before it has created its autoscaler.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "router/scaling/version_load.h"
#include "runtime/net/grpc_method.h"

namespace serin::router {

class ExternalScaler {
 public:
  explicit ExternalScaler(const LoadSource& loads);

  /// For net::start_grpc_server(). It must outlive the server.
  net::GrpcMethod* method(std::string_view path) const;

 private:
  struct Method {
    std::string path;
    std::unique_ptr<net::GrpcMethod> serves;
  };
  std::vector<Method> methods_;
};

}  // namespace serin::router
