// dashboard.h: Serves the web page that shows and steers rollouts, from files embedded in the program.
//
// It serves only the page. The page gets its data from the admin API, like every other client.
#pragma once

#include <optional>

#include "runtime/net/http.h"

namespace serin::router {

/// The answer if the path is one of the page's files: GET and HEAD, compressed if the client accepts that, 304 if the client has it
/// already.
std::optional<net::Response> dashboard_answer(const net::Request& request);

}  // namespace serin::router
