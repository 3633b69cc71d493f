#include "runtime/net/grpc.h"

#include <algorithm>
#include <array>

#include "runtime/base/number.h"

namespace serin::net {
namespace {

struct Row {
  std::string_view name;
  int http_status;
};
// In the order of GrpcStatus. The statuses of HTTP are those that google.rpc.Code names.
constexpr std::array<Row, 17> kRows = {{{"OK", 200},
                                        {"CANCELLED", 499},
                                        {"UNKNOWN", 500},
                                        {"INVALID_ARGUMENT", 400},
                                        {"DEADLINE_EXCEEDED", 504},
                                        {"NOT_FOUND", 404},
                                        {"ALREADY_EXISTS", 409},
                                        {"PERMISSION_DENIED", 403},
                                        {"RESOURCE_EXHAUSTED", 429},
                                        {"FAILED_PRECONDITION", 400},
                                        {"ABORTED", 409},
                                        {"OUT_OF_RANGE", 400},
                                        {"UNIMPLEMENTED", 501},
                                        {"INTERNAL", 500},
                                        {"UNAVAILABLE", 503},
                                        {"DATA_LOSS", 500},
                                        {"UNAUTHENTICATED", 401}}};

constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365);
constexpr size_t kLongestMessage = 2048;  // a head has a limit, and so has patience

}  // namespace

std::string_view grpc_name(GrpcStatus status) { return kRows[static_cast<size_t>(status)].name; }
int http_status_of(GrpcStatus status) { return kRows[static_cast<size_t>(status)].http_status; }

GrpcStatus grpc_status_of(int http_status) {
  switch (http_status) {
    case 400: return GrpcStatus::kInvalidArgument;
    case 401: return GrpcStatus::kUnauthenticated;
    case 403: return GrpcStatus::kPermissionDenied;
    case 404: return GrpcStatus::kNotFound;
    case 408:
    case 504: return GrpcStatus::kDeadlineExceeded;
    case 409: return GrpcStatus::kAborted;
    case 413:
    case 414:
    case 429:
    case 431: return GrpcStatus::kResourceExhausted;
    case 499: return GrpcStatus::kCancelled;
    case 405:
    case 415:
    case 501: return GrpcStatus::kUnimplemented;
    case 502:
    case 503: return GrpcStatus::kUnavailable;
    default: return http_status >= 500 ? GrpcStatus::kInternal : GrpcStatus::kUnknown;
  }
}

bool is_grpc(const Head& request) {
  constexpr std::string_view kType = "application/grpc";
  if (!request.http2 || request.method != "POST") return false;
  const std::string_view type = request.headers.get("content-type");
  if (!type.starts_with(kType)) return false;
  return type.size() == kType.size() || type[kType.size()] == '+' || type[kType.size()] == ';';
}

std::optional<GrpcStatus> grpc_status_in(const Headers& headers) {
  const auto number = parse_number<unsigned>(headers.get("grpc-status"));
  if (!number) return std::nullopt;
  return *number < kRows.size() ? static_cast<GrpcStatus>(*number) : GrpcStatus::kUnknown;
}

GrpcStatus grpc_status_in_answer(int http_status, const Headers& headers) {
  if (const auto said = grpc_status_in(headers)) return *said;
  return http_status == 200 ? GrpcStatus::kUnknown : grpc_status_of(http_status);
}

std::optional<std::chrono::nanoseconds> parse_grpc_timeout(std::string_view text) {
  constexpr size_t kMostDigits = 8;
  if (text.size() < 2 || text.size() > kMostDigits + 1) return std::nullopt;
  const auto digits = parse_number<uint32_t>(text.substr(0, text.size() - 1));  // unsigned takes no sign
  if (!digits) return std::nullopt;
  const int64_t number = *digits;
  using namespace std::chrono;
  switch (text.back()) {
    case 'H': return number >= 24 * 365 ? kLongest : nanoseconds(hours(number));
    case 'M': return number >= 60 * 24 * 365 ? kLongest : nanoseconds(minutes(number));
    case 'S': return std::min(kLongest, nanoseconds(seconds(number)));
    case 'm': return nanoseconds(milliseconds(number));
    case 'u': return nanoseconds(microseconds(number));
    case 'n': return nanoseconds(number);
    default: return std::nullopt;
  }
}

std::string print_grpc_timeout(std::chrono::nanoseconds time) {
  using namespace std::chrono;
  const int64_t left = std::max<int64_t>(ceil<milliseconds>(time).count(), 1);
  if (left < 100'000'000) return std::to_string(left) + "m";
  return std::to_string(ceil<seconds>(time).count()) + "S";
}

void set_grpc_status(Headers& headers, GrpcStatus status, std::string_view message) {
  headers.set("grpc-status", std::to_string(static_cast<int>(status)));
  headers.remove("grpc-message");
  if (message.empty()) return;
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : message.substr(0, kLongestMessage)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte <= 0x7E && c != '%')
      escaped += c;
    else
      escaped.append({'%', kHex[byte >> 4], kHex[byte & 15]});
  }
  headers.add("grpc-message", escaped);
}

Response grpc_error(GrpcStatus status, std::string_view message) {
  Response response;
  response.headers.add("content-type", "application/grpc");
  set_grpc_status(response.headers, status, message);
  return response;
}

uint32_t grpc_length(std::string_view prefix) {
  const auto byte = [prefix](size_t at) { return static_cast<uint32_t>(static_cast<unsigned char>(prefix[at])); };
  return byte(1) << 24 | byte(2) << 16 | byte(3) << 8 | byte(4);
}

std::optional<GrpcPrefix> read_grpc_prefix(std::string_view bytes) {
  const auto flag = static_cast<unsigned char>(bytes[0]);
  if (flag > 1) return std::nullopt;
  return GrpcPrefix{.compressed = flag == 1, .length = grpc_length(bytes)};
}

void append_grpc_prefix(const GrpcPrefix& prefix, std::string& out) {
  out.append({static_cast<char>(prefix.compressed), static_cast<char>(prefix.length >> 24), static_cast<char>(prefix.length >> 16),
              static_cast<char>(prefix.length >> 8), static_cast<char>(prefix.length)});
}

std::string begin_grpc_message(size_t expected_bytes, std::string memory) {
  memory.clear();
  memory.reserve(GrpcPrefix::kBytes + expected_bytes);
  memory.append(GrpcPrefix::kBytes, '\0');
  return memory;
}

void seal_grpc_message(std::string& framed) {
  std::string prefix;
  append_grpc_prefix({.length = static_cast<uint32_t>(framed.size() - GrpcPrefix::kBytes)}, prefix);
  framed.replace(0, GrpcPrefix::kBytes, prefix);
}

std::string grpc_framed(std::string_view message) {
  std::string framed = begin_grpc_message(message.size());
  framed += message;
  seal_grpc_message(framed);
  return framed;
}

}  // namespace serin::net
