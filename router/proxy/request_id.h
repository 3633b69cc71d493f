// request_id.h: The ID by which a client names its request later.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "router/proxy/rewrite.h"
#include "runtime/net/message/head_parser.h"
#include "runtime/protocol/json/json_pointer.h"

namespace serin::router {

inline constexpr std::string_view kRequestId = "x-request-id";

/// The header x-request-id; else `id` of a request of the Open Inference Protocol; else `drawn`, in hexadecimal digits. An ID has 1 to 128
/// characters of ASCII that can be seen; another one is none. `body`: the whole of it, or nothing.
std::string request_id_of(const net::Head& request, const Target& target, std::string_view body, protocol::JsonPointerReader& json,
                          uint64_t drawn);

}  // namespace serin::router
