#include "runtime/serving/apis/http_answers.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/serving/repository/catalogue.h"

namespace serin::serving {
namespace {

constexpr size_t kLongestField = 256;

}  // namespace

int http_status(Code code) {
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

net::Response error_response(const Error& error, std::string_view field) {
  net::Response response = net::json_error(http_status(error.code), error.message);
  response.headers.set("x-serin-code", code_name(error.code));
  if (!field.empty()) response.headers.set("x-serin-field", field.substr(0, kLongestField));  // names in it are the client's
  return response;
}

void use_triton_status(net::Response& response) {
  const std::string_view code = response.headers.get("x-serin-code");
  const auto is = [code](Code other) { return code == code_name(other); };
  switch (response.status) {
    case 400: response.status = is(Code::kCorrupt) ? 500 : is(Code::kUnsupported) ? 501 : 400; break;
    case 409: response.status = is(Code::kFailedPrecondition) ? 503 : is(Code::kAlreadyExists) ? 400 : 409; break;
    case 413: response.status = 400; break;
    case 415: response.status = 501; break;
    case 429:
    case 504: response.status = 503; break;
    case 503: response.status = code.empty() ? 400 : 503; break;  // a probe's no
    default: break;
  }
}

net::Response json_response(std::string body, int status) {
  net::Response response;
  response.status = status;
  response.headers.set("Content-Type", "application/json");
  response.body = std::move(body);
  return response;
}

net::Response models_response(const Catalogue& now) {
  std::string names;
  for (const auto& [name, entry] : now.models) names += (names.empty() ? "" : ",") + net::json_quote(name);
  return json_response(fmt::format(R"({{"models":[{}]}})", names));
}

net::Response wrong_verb(std::string_view allowed, std::string_view more) {
  net::Response response = net::json_error(405, fmt::format("this path takes {} only{}", allowed, more));
  response.headers.set("Allow", allowed);
  return response;
}

std::string_view take_segment(std::string_view& path) {
  const size_t end = std::min(path.find('/'), path.size());
  const std::string_view segment = path.substr(0, end);
  path.remove_prefix(std::min(end + 1, path.size()));
  return segment;
}

}  // namespace serin::serving
