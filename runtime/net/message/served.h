// served.h: requests that a server refuses without its handler, and their answers, for both HTTP versions. For the .cc files of net only.
#pragma once

#include <optional>

#include "runtime/net/message/head_parser.h"
#include "runtime/net/message/refusal.h"
#include "runtime/net/server_options.h"

namespace serin::net {

struct Listener;

HeadLimits head_limits(const Limits& limits);
/// Returns the reason if a well-formed request is not served.
std::optional<Refusal> unserved(const Head& head, const Listener& listener);
Response answer_to(const Refusal& refusal, const ServerOptions& options);
/// The answer to OPTIONS for the whole server.
Response answer_to_asterisk();

}  // namespace serin::net
