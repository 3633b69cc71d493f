// own_answers.cc: the server part of the Open Inference Protocol.

#include "router/proxy/own_answers.h"

#include <fmt/format.h>

#include "runtime/base/version.h"
#include "runtime/net/grpc.h"

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

net::Response call_of_ours(const Router& router, const net::Head& request) {
  std::string message;  // in all of them field 1 says it: a yes as a varint, a name as a text
  if (request.path == "/inference.GRPCInferenceService/ServerLive") {
    message = "\x08\x01";
  } else if (request.path == "/inference.GRPCInferenceService/ServerReady") {
    if (router.ready()) message = "\x08\x01";
  } else if (request.path == "/inference.GRPCInferenceService/ServerMetadata") {
    constexpr std::string_view kName = "serin-router", kServerVersion = kVersion;
    message =
        fmt::format("\x0A{}{}\x12{}{}", static_cast<char>(kName.size()), kName, static_cast<char>(kServerVersion.size()), kServerVersion);
  } else if (request.path == "/grpc.health.v1.Health/Check") {
    message = router.ready() ? "\x08\x01" : "\x08\x02";
  } else {
    return net::grpc_error(
        net::GrpcStatus::kUnimplemented,
        fmt::format("method '{}' names no service of this router; name one with the header x-serin-service", request.path));
  }
  net::Response response;
  response.headers.add("content-type", "application/grpc");
  net::append_grpc_prefix({.length = static_cast<uint32_t>(message.size())}, response.body);
  response.body += message;
  response.trailers.add("grpc-status", "0");
  return response;
}

}  // namespace serin::router
