// h2_anything.h: what a fuzzer asks of HTTP/2: frames from outside, to a server that answers whatever it is asked.
#pragma once

#include <string_view>

namespace serin::fuzz {

/// The bytes of a client behind the preface and its SETTINGS. The connection must end, and every request that comes through must be one that the
/// router can write again for HTTP/1.1 (http_anything.h).
void h2_anything(std::string_view frames);

}  // namespace serin::fuzz
