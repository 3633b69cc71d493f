// grpc.h: the parts that gRPC adds to HTTP/2: content-type, status in trailers, deadlines, length-prefixed messages. Text and bytes only.
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

/// For example "RESOURCE_EXHAUSTED".
std::string_view grpc_name(GrpcStatus status);
/// The HTTP status for a gRPC status, for example 429. An unknown status counts as kUnknown.
int http_status_of(GrpcStatus status);
/// The gRPC status for an HTTP answer with that status.
GrpcStatus grpc_status_of(int http_status);

/// POST over HTTP/2 with content-type application/grpc, application/grpc+proto ...; not grpc-web.
bool is_grpc(const Head& request);
/// The grpc-status in trailers, or in the head of an answer without a body. Nothing if absent or not a number.
std::optional<GrpcStatus> grpc_status_in(const Headers& headers);
/// The status of a call whose answer has that head and no trailers with a status. Without any status, the call has failed.
GrpcStatus grpc_status_in_answer(int http_status, const Headers& headers);

/// Parses a timeout such as "100m". Nothing if it is malformed. At most a year, so that sums do not overflow.
std::optional<std::chrono::nanoseconds> parse_grpc_timeout(std::string_view text);
/// Rounds up to milliseconds, or to seconds if milliseconds need more than the eight allowed digits.
std::string print_grpc_timeout(std::chrono::nanoseconds time);

/// Adds grpc-status and, if there is one, the message in gRPC's escapes.
void set_grpc_status(Headers& headers, GrpcStatus status, std::string_view message);
/// Makes the whole answer to a call that failed before anything was sent: a head only.
Response grpc_error(GrpcStatus status, std::string_view message);

/// The five bytes before every message: whether it is compressed, and its length.
struct GrpcPrefix {
  static constexpr size_t kBytes = 5;
  bool compressed = false;
  uint32_t length = 0;
};
/// Length of the message after these kBytes.
uint32_t grpc_length(std::string_view prefix);
/// Requires kBytes. Nothing if the first byte is neither 0 nor 1.
std::optional<GrpcPrefix> read_grpc_prefix(std::string_view bytes);
void append_grpc_prefix(const GrpcPrefix& prefix, std::string& out);

/// Reserves room for a prefix at the start of a message; seal_grpc_message() writes it. It reuses `memory`, whose content is lost.
std::string begin_grpc_message(size_t expected_bytes = 0, std::string memory = {});
void seal_grpc_message(std::string& framed);
std::string grpc_framed(std::string_view message);

}  // namespace serin::net
