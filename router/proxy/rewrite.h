// rewrite.h: what of a message is passed on. Heads are made anew from what was parsed, never copied raw.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "router/config.h"
#include "runtime/net/client.h"
#include "runtime/net/http.h"

namespace serin::router {

/// What the path of a request asks for.
struct Target {
  std::string service;
  std::string rest;    ///< what follows /v2/models/<service>[/versions/<v>], with its slash: "/infer", "/ready", ""
  bool infer = false;  ///< POST .../infer: the only requests that are drawn and judged
};
/// Nothing where the path is not below /v2/models/.
std::optional<Target> parse_target(const net::Request& request);

/// The request as it goes to `endpoint`, without the body: target by the endpoint's path, end-to-end headers only, Serin's own stripped.
net::Outgoing make_outgoing(const net::Request& request, const Target& target, const Endpoint& endpoint);
/// The answer as it goes to the client, marked with the version that gave it.
net::Response make_answer(net::Response upstream, std::string_view version);

}  // namespace serin::router
