// browser_guard.h: Prevents a web page that an engineer visits from steering the router on the engineer's own machine.
#pragma once

#include <optional>

#include "runtime/net/http.h"

namespace serin::router {

/// A refusal if the request appears to come from a web page and not from a tool:
///   - on loopback, a Host that is not (a name of the page's own domain that now points here: DNS rebinding): 403
///   - an Origin that is not this server: 403
///   - a change with a content type that any page may send without permission (forms): 415
std::optional<net::Response> refuse_browser(const net::Request& request, bool on_loopback);

}  // namespace serin::router
