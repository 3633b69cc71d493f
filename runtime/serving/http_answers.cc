#include "runtime/serving/http_answers.h"

#include <fmt/format.h>

#include <algorithm>

namespace serin::serving {
namespace {

/// What Triton calls errors that it sees differently, as its tests and its users' do; 0: the same as ours.
int triton_status(Code code) {
  switch (code) {
    case Code::kCorrupt: return 500;
    case Code::kTooLarge: return 400;
    case Code::kUnsupported: return 501;
    case Code::kOverloaded:
    case Code::kFailedPrecondition:
    case Code::kDeadlineExceeded: return 503;
    default: return 0;
  }
}

}  // namespace

int http_status(Code code, Dialect dialect) {
  if (const int status = dialect == Dialect::kTriton ? triton_status(code) : 0; status != 0) return status;
  switch (code) {
    case Code::kPermissionDenied: return 403;
    case Code::kNotFound: return 404;
    case Code::kAlreadyExists:
    case Code::kFailedPrecondition:
    case Code::kConflict: return 409;
    case Code::kTooLarge: return 413;
    case Code::kOverloaded: return 429;
    case Code::kCancelled: return 499;
    case Code::kUnavailable: return 503;
    case Code::kDeadlineExceeded: return 504;
    case Code::kInternal:
    case Code::kIo: return 500;
    default: return 400;
  }
}

net::Response error_response(const Error& error, std::string_view field, Dialect dialect) {
  net::Response response = net::json_error(http_status(error.code, dialect), error.message);
  response.headers.set("x-serin-code", code_name(error.code));
  if (!field.empty()) response.headers.set("x-serin-field", field);
  return response;
}

net::Response json_response(std::string body, int status) {
  net::Response response;
  response.status = status;
  response.headers.set("Content-Type", "application/json");
  response.body = std::move(body);
  return response;
}

net::Response wrong_verb(std::string_view allowed) {
  net::Response response = net::json_error(405, fmt::format("this path takes {} only", allowed));
  response.headers.set("Allow", allowed);
  return response;
}

std::string take_segment(std::string_view& path) {
  const size_t end = std::min(path.find('/'), path.size());
  std::string segment(path.substr(0, end));
  path.remove_prefix(std::min(end + 1, path.size()));
  return segment;
}

}  // namespace serin::serving
