// http_anything.h: what a fuzzer asks of HTTP: messages from outside, however their bytes are cut, and what the router passes on of them.
#pragma once

#include <string_view>

#include "runtime/net/message/head_parser.h"

namespace serin::fuzz {

/// The first byte chooses: r what a client sends, a what a server answers, h frames of HTTP/2 (h2_anything.h), z a packed body. The second one of r and a says where
/// the bytes of the rest are cut.
/// The verdict must not depend on the cuts, and what is accepted must still be one message, and the same, once the router has written it again.
void http_anything(std::string_view input);

/// What the proxy does with a request before it opens a stream, and the stream when it begins: the message that it writes must be that request.
void pass_on_request(net::Head head);

}  // namespace serin::fuzz
