// message_writer.h: heads as they go out. Whatever a name or value holds, it stays one header of one message: no response splitting.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/net/client.h"
#include "runtime/net/http.h"

namespace serin::net {

/// How the connection goes on after this message.
enum class Persistence : uint8_t {
  kImplied,    ///< HTTP/1.1: kept, and nothing is said
  kKeepAlive,  ///< HTTP/1.0 and kept
  kClose
};

/// Appends the head of an answer. Content-Length is that of the body, also where none follows (HEAD); statuses that have none get none.
void write_response_head(const Response& response, Persistence persistence, std::string& out);
/// Appends the head of a request. Requires valid_request_line().
void write_request_head(const Origin& origin, const Outgoing& request, std::string& out);

bool valid_request_line(const Outgoing& request);
bool status_has_body(int status);
/// "host:port", with brackets around an IPv6 address.
std::string authority(const Origin& origin);

}  // namespace serin::net
