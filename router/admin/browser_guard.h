// browser_guard.h: what keeps a web page that an engineer happens to visit from steering the router on the engineer's own machine.
#pragma once

#include <optional>

#include "runtime/net/http.h"

namespace serin::router {

/// A refusal where the request looks like a page's rather than a tool's:
///   - on loopback, a Host that is not (a name of the page's own domain that now points here: DNS rebinding): 403
///   - an Origin that is not this server: 403
///   - a change sent with a content type that any page may send without being asked (forms): 415
std::optional<net::Response> refuse_browser(const net::Request& request, bool on_loopback);

}  // namespace serin::router
