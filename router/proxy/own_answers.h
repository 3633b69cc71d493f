// own_answers.h: what the router answers by itself on the data port: who it is, whether it lives, whether it is ready.
#pragma once

#include "router/proxy/service.h"
#include "runtime/net/head_parser.h"
#include "runtime/net/http.h"

namespace serin::router {

/// For a path that names no service; 404 where it is not the router's either.
net::Response answer_of_ours(const Router& router, const net::Head& request);

}  // namespace serin::router
