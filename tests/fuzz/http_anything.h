// http_anything.h: what a fuzzer asks of HTTP: messages from outside, however their bytes are cut, and what the router passes on of them.
#pragma once

#include <string_view>

namespace serin::fuzz {

/// The first byte chooses: r what a client sends, a what a server answers. The second one says where the bytes of the rest are cut.
/// The verdict must not depend on the cuts, and what is accepted must still be one message, and the same, once the router has written it again.
void http_anything(std::string_view input);

}  // namespace serin::fuzz
