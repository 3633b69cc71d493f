// own_answers.h: The router's own answers on the data port: its identity, liveness and readiness.
#pragma once

#include <optional>

#include "router/proxy/rewrite.h"
#include "router/proxy/service.h"
#include "runtime/net/http.h"
#include "runtime/net/message/head_parser.h"

namespace serin::router {

/// For a path that names no service of this router; 404 if it is not one of the router's own paths. `target`: of the path, if it can be
/// one.
net::Response answer_of_ours(const Router& router, const net::Head& request, const std::optional<Target>& target);
/// The same for gRPC calls; UNIMPLEMENTED if the router does not know the method.
net::Response call_of_ours(const Router& router, const net::Head& request);

}  // namespace serin::router
