// own_answers.h: what the router answers by itself on the data port: who it is, whether it lives, whether it is ready.
#pragma once

#include <optional>

#include "router/proxy/rewrite.h"
#include "router/proxy/service.h"
#include "runtime/net/http.h"
#include "runtime/net/message/head_parser.h"

namespace serin::router {

/// For a path that names no service of this router's; 404 where it is not the router's own either. `target`: of the path, where it could be one.
net::Response answer_of_ours(const Router& router, const net::Head& request, const std::optional<Target>& target);
/// The same for calls of gRPC; UNIMPLEMENTED where it is nobody's.
net::Response call_of_ours(const Router& router, const net::Head& request);

}  // namespace serin::router
