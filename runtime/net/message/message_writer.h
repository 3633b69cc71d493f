// message_writer.h: heads as they go out. Whatever a name or value holds, it stays one header of one message: no response splitting.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/net/client.h"
#include "runtime/net/http.h"
#include "runtime/net/stream.h"

namespace serin::net {

/// How the connection goes on after this message.
enum class Persistence : uint8_t {
  kImplied,    ///< HTTP/1.1: kept, and nothing is said
  kKeepAlive,  ///< HTTP/1.0 and kept
  kClose
};

/// Appends the head of an answer, with its length where that is known, and what else says where the message ends.
void write_answer_head(const AnswerHead& head, Persistence persistence, bool chunked, std::string& out);
/// Appends the head of a request to `host`, which is what authority() gives. Requires valid_request_line().
void write_request_head(std::string_view host, const RequestHead& head, std::string& out);
/// Appends a part of a chunked body; `last`: and its end.
void append_chunk(std::string_view bytes, bool last, std::string& out);

bool valid_request_line(std::string_view method, std::string_view target);
bool status_has_body(int status);
/// "host:port", with brackets around an IPv6 address.
std::string authority(const Origin& origin);

}  // namespace serin::net
