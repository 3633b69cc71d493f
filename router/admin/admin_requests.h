// admin_requests.h: what of a request to the admin API is read, and refused where it makes no sense.
#pragma once

#include <string>
#include <string_view>

#include "router/admin/access.h"
#include "router/control/controller.h"
#include "runtime/base/config.h"
#include "runtime/base/result.h"
#include "runtime/net/http.h"

namespace serin::router {

/// Who a token belongs to is known; whom a tool says that it acts for is only told.
std::string actor_of(const net::Request& request, const Caller& caller);
/// Actor and If-Match: "7" (the ETag), 7, or *.
Result<Controller::Request> read_request(const net::Request& request, const Caller& caller);
/// The body of a command; none is an empty one.
Result<config::Node> read_body(const net::Request& request);
/// Of a body; at most 1000 characters.
Result<std::string> read_reason(const config::Node& body);
/// limit=N
Result<size_t> read_limit(std::string_view query);

}  // namespace serin::router
