// admin_requests.h: Reads the parts of a request to the admin API, and refuses invalid ones.
#pragma once

#include <string>
#include <string_view>

#include "router/admin/access.h"
#include "router/control/controller.h"
#include "runtime/base/config.h"
#include "runtime/base/result.h"
#include "runtime/net/http.h"

namespace serin::router {

/// The token's owner is verified; the person that a tool claims to act for is not.
std::string actor_of(const net::Request& request, const Caller& caller);
/// Actor and If-Match: "7" (the ETag), 7, or *.
Result<Controller::Request> read_request(const net::Request& request, const Caller& caller);
/// The body of a command; no body is an empty one.
Result<config::Node> read_body(const net::Request& request);
/// The reason in a body; at most 1000 characters.
Result<std::string> read_reason(const config::Node& body);
/// limit=N
Result<size_t> read_limit(std::string_view query);
/// canary=VERSION, which stays as it is written, escapes and all
Result<std::string_view> read_canary(std::string_view query);

}  // namespace serin::router
