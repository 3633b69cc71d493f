// dashboard.h: the page that shows rollouts and steers them, out of the program itself. It is only the page: what it shows it asks of the admin
// API, like anybody else.
#pragma once

#include <optional>

#include "runtime/net/http.h"

namespace serin::router {

/// The answer where the path is one of the page's files: GET and HEAD, compressed where the client takes that, 304 where it has it already.
std::optional<net::Response> dashboard_answer(const net::Request& request);

}  // namespace serin::router
