// grpc.h: what gRPC adds to HTTP/2: content-type, status in the trailers, deadlines, messages with a length before them. Pure text and bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/net/http.h"
#include "runtime/net/message/head_parser.h"

namespace serin::net {

enum class GrpcStatus : uint8_t {
  kOk,
  kCancelled,
  kUnknown,
  kInvalidArgument,
  kDeadlineExceeded,
  kNotFound,
  kAlreadyExists,
  kPermissionDenied,
  kResourceExhausted,
  kFailedPrecondition,
  kAborted,
  kOutOfRange,
  kUnimplemented,
  kInternal,
  kUnavailable,
  kDataLoss,
  kUnauthenticated
};

/// "RESOURCE_EXHAUSTED"
std::string_view grpc_name(GrpcStatus status);
/// What answers that question in HTTP: 429. One that is none counts as kUnknown.
int http_status_of(GrpcStatus status);
/// What an answer of HTTP with that status means to who called by gRPC.
GrpcStatus grpc_status_of(int http_status);

/// POST over HTTP/2 with content-type application/grpc, application/grpc+proto ...; not grpc-web.
bool is_grpc(const Head& request);
/// The grpc-status in trailers, or in the head of an answer without a body. Absent, or no number: nothing.
std::optional<GrpcStatus> grpc_status_in(const Headers& headers);
/// How a call has ended whose answer has that head and no trailers that say it. One that says nothing has not ended well.
GrpcStatus grpc_status_in_answer(int http_status, const Headers& headers);

/// "100m": the time that a caller gives. Nothing where it is malformed. At most a year, so that sums do not overflow.
std::optional<std::chrono::nanoseconds> parse_grpc_timeout(std::string_view text);
/// Rounded up to milliseconds, or to seconds where that takes more than the eight digits there may be.
std::string print_grpc_timeout(std::chrono::nanoseconds time);

/// Adds grpc-status and, where there is one, the message in the escapes that gRPC asks for.
void set_grpc_status(Headers& headers, GrpcStatus status, std::string_view message);
/// The whole answer to a call that failed before anything was said: a head and nothing else.
Response grpc_error(GrpcStatus status, std::string_view message);

/// Five bytes before every message: whether it is compressed, and its length.
struct GrpcPrefix {
  static constexpr size_t kBytes = 5;
  bool compressed = false;
  uint32_t length = 0;
};
/// Of the message behind these kBytes.
uint32_t grpc_length(std::string_view prefix);
/// Requires kBytes. Nothing where the first is neither 0 nor 1.
std::optional<GrpcPrefix> read_grpc_prefix(std::string_view bytes);
void append_grpc_prefix(const GrpcPrefix& prefix, std::string& out);

}  // namespace serin::net
