// admin_answers.h: Turns the controller's results into HTTP responses.
#pragma once

#include <string>
#include <string_view>

#include "router/control/controller.h"
#include "runtime/base/result.h"
#include "runtime/net/http.h"

namespace serin::router {

/// The status for the code, the message, and `x-serin-code`.
net::Response error_response(const Error& error);
net::Response json_response(int status, std::string body);
/// The same for every client: needs no token.
net::Response document_response(std::string_view type, std::string_view text);
/// The state of a service, with its epoch as ETag.
net::Response status_response(int code, const Result<ServiceStatus>& status);
net::Response method_not_allowed(std::string_view allowed);
net::Response not_found(std::string_view path);

}  // namespace serin::router
