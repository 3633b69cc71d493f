// own_answers.cc: the server part of the Open Inference Protocol.

#include "router/proxy/own_answers.h"

#include <fmt/format.h>

#include "runtime/base/version.h"

namespace serin::router {

net::Response answer_of_ours(const Router& router, const net::Head& request, const std::optional<Target>& target) {
  if (target && target->model)
    return net::json_error(404,
                           fmt::format("Request for unknown model: '{}' is not found: the router has no such service", target->service));
  std::string_view path = request.path;
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const bool known = path == "/v2" || path == "/v2/health/live" || path == "/v2/health/ready";
  if (!known) return net::json_error(404, "Not Found");
  net::Response response;
  if (request.method != "GET" && request.method != "HEAD") {
    response = net::json_error(405, "this path takes GET only");
    response.headers.set("Allow", "GET");
    return response;
  }
  response.headers.set("Content-Type", "application/json");
  if (path == "/v2") {
    response.body = fmt::format(R"({{"name":"serin-router","version":"{}","extensions":[]}})", kVersion);
  } else if (path == "/v2/health/live") {
    response.body = R"({"live":true})";
  } else {
    const bool ready = router.ready();
    response.status = ready ? 200 : 503;
    response.body = ready ? R"({"ready":true})" : R"({"ready":false})";
  }
  return response;
}

}  // namespace serin::router
