#include "router/admin/admin_answers.h"

#include <fmt/format.h>

#include "router/view/status_json.h"

namespace serin::router {

using net::Response;

namespace {

int status_of(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kOutOfRange:
    case Code::kUnsupported:
    case Code::kCorrupt: return 400;
    case Code::kPermissionDenied: return 403;
    case Code::kNotFound: return 404;
    case Code::kAlreadyExists:
    case Code::kFailedPrecondition: return 409;
    case Code::kConflict: return 412;
    case Code::kTooLarge: return 413;
    case Code::kOverloaded: return 429;
    case Code::kUnavailable:
    case Code::kIo: return 503;
    case Code::kDeadlineExceeded: return 504;
    case Code::kCancelled:
    case Code::kInternal: break;
  }
  return 500;
}

}  // namespace

Response error_response(const Error& error) {
  Response response = net::json_error(status_of(error.code), error.message);
  response.headers.set("x-serin-code", code_name(error.code));
  return response;
}

Response json_response(int status, std::string body) {
  Response response;
  response.status = status;
  response.headers.set("Content-Type", "application/json");
  response.headers.set("Cache-Control", "no-store");
  response.body = std::move(body) + "\n";
  return response;
}

Response document_response(std::string_view type, std::string_view text) {
  Response response;
  response.headers.set("Content-Type", type);
  response.body = text;
  return response;
}

Response status_response(int code, const Result<ServiceStatus>& status) {
  if (!status) return error_response(status.error());
  Response response = json_response(code, status_json(*status));
  response.headers.set("ETag", fmt::format("\"{}\"", status->epoch));
  return response;
}

Response method_not_allowed(std::string_view allowed) {
  Response response = net::json_error(405, fmt::format("method not allowed; allowed: {}", allowed));
  response.headers.set("Allow", allowed);
  return response;
}

Response not_found(std::string_view path) {
  return net::json_error(404,
                         fmt::format("not found: '{}'; see /v1/rollouts, /v1/services, /v1/events, /v1/me, /metrics, /health/ready", path));
}

}  // namespace serin::router
