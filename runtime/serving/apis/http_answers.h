// http_answers.h: makes the answers over HTTP that all APIs share.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/net/http.h"

namespace serin::serving {

struct Catalogue;

/// The HTTP status for an error about a request.
int http_status(Code code);
/// Makes {"error": text}, with x-serin-code and, if one field is invalid, x-serin-field.
net::Response error_response(const Error& error, std::string_view field = {});
/// Sets the status that Triton uses, because users' tests rely on it, although Triton reports some client errors as server errors.
void use_triton_status(net::Response& response);
net::Response json_response(std::string body, int status = 200);
/// Makes {"models": [name, ...]}, as KServe's servers answer.
net::Response models_response(const Catalogue& now);
/// Makes a 405 that names the allowed methods, followed by `more`.
net::Response wrong_verb(std::string_view allowed, std::string_view more = {});
inline bool is_get(const net::Request& request) { return request.method == "GET" || request.method == "HEAD"; }
/// Removes the first segment of a path, with its slash, and returns it.
std::string_view take_segment(std::string_view& path);

}  // namespace serin::serving
