// message_writer.h: writes heads of HTTP/1.1 messages. Any name or value stays one header of one message, so response splitting is
// impossible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/net/http.h"
#include "runtime/net/stream.h"

namespace serin::net {

/// Whether the connection is kept after this message.
enum class Persistence : uint8_t {
  kImplied,    ///< HTTP/1.1: kept; no header is needed
  kKeepAlive,  ///< HTTP/1.0 and kept
  kClose
};

/// Appends the head of an answer, with its length if known, otherwise with the header that marks the end of the message.
void write_answer_head(const AnswerHead& head, Persistence persistence, bool chunked, std::string& out);
/// Appends the head of a request to `host`, as returned by authority() or host_field(). Requires valid_request_line().
void write_request_head(std::string_view host, const RequestHead& head, std::string& out);
/// Appends a part of a chunked body; `last`: also its end.
void append_chunk(std::string_view bytes, bool last, std::string& out);

bool valid_request_line(std::string_view method, std::string_view target);
bool status_has_body(int status);
/// "host:port", with brackets around an IPv6 address.
std::string authority(const Origin& origin);
/// The same for the header Host: without the port that the scheme implies. Signatures of requests compare it letter by letter.
std::string host_field(const Origin& origin);

}  // namespace serin::net
