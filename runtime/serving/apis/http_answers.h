// http_answers.h: answers over HTTP that all doors give alike.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/net/http.h"

namespace serin::serving {

struct Catalogue;

/// The status of HTTP for an error about a request.
int http_status(Code code);
/// {"error": text}, with x-serin-code and, where one field is to blame, x-serin-field.
net::Response error_response(const Error& error, std::string_view field = {});
/// Gives an answer the status that Triton has for it: users' tests rely on them, though some call a client's mistake the server's.
void use_triton_status(net::Response& response);
net::Response json_response(std::string body, int status = 200);
/// {"models": [name, ...]}, as KServe's servers answer.
net::Response models_response(const Catalogue& now);
/// 405, with what the path takes, and `more` of that sentence.
net::Response wrong_verb(std::string_view allowed, std::string_view more = {});
inline bool is_get(const net::Request& request) { return request.method == "GET" || request.method == "HEAD"; }
/// Cuts off the first segment of a path and the slash behind it.
std::string_view take_segment(std::string_view& path);

}  // namespace serin::serving
