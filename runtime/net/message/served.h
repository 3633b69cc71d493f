// served.h: what a server refuses whatever its handler, and how it says so; the same in both versions of HTTP. For the .cc files of net only.
#pragma once

#include <optional>

#include "runtime/net/message/head_parser.h"
#include "runtime/net/message/refusal.h"
#include "runtime/net/server.h"

namespace serin::net {

struct Listener;

HeadLimits head_limits(const Limits& limits);
/// What is well-formed and still not served.
std::optional<Refusal> unserved(const Head& head, const Listener& listener);
Response answer_to(const Refusal& refusal, const ServerOptions& options);
/// To OPTIONS of the whole server.
Response answer_to_asterisk();

}  // namespace serin::net
