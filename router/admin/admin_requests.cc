#include "router/admin/admin_requests.h"

#include <fmt/format.h>

#include "runtime/base/number.h"

namespace serin::router {

using net::Request;

namespace {

constexpr size_t kHistoryDefault = 100, kLongestActor = 128;

Result<std::optional<uint64_t>> read_if_match(const Request& request) {
  if (!request.headers.has("if-match")) return std::optional<uint64_t>();
  std::string_view text = request.headers.get("if-match");
  if (text == "*") return std::optional<uint64_t>();
  const std::string_view given = text;
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  if (const auto epoch = parse_number<uint64_t>(text)) return epoch;
  return Error{Code::kInvalidArgument, fmt::format("header if-match: must be the epoch of the service, such as \"7\", not '{}'", given)};
}

}  // namespace

std::string actor_of(const Request& request, const Caller& caller) {
  const std::string_view told = request.headers.get("x-serin-actor").substr(0, kLongestActor);
  if (caller.name == request.peer) return told.empty() ? caller.name : std::string(told);
  return told.empty() ? caller.name : fmt::format("{} ({})", caller.name, told);
}

Result<Controller::Request> read_request(const Request& request, const Caller& caller) {
  Controller::Request command;
  SERIN_TRY(command.if_match, read_if_match(request));
  command.actor = actor_of(request, caller);
  return command;
}

Result<config::Node> read_body(const Request& request) { return config::Node::parse(request.body, "request body"); }

Result<std::string> read_reason(const config::Node& body) {
  SERIN_TRY(std::string reason, body.text("reason", ""));
  if (reason.size() > 1000) return body.find("reason")->error("must be at most 1000 characters");
  return reason;
}

Result<size_t> read_limit(std::string_view query) {
  constexpr std::string_view kKey = "limit=";
  if (query.empty()) return kHistoryDefault;
  const auto limit = query.starts_with(kKey) ? parse_number<size_t>(query.substr(kKey.size())) : std::nullopt;
  if (!limit || *limit == 0 || *limit > store::kHistoryLimit)
    return Error{Code::kInvalidArgument, fmt::format("query: must be limit=N with N from 1 to {}, not '{}'", store::kHistoryLimit, query)};
  return *limit;
}

Result<std::string_view> read_canary(std::string_view query) {
  constexpr std::string_view kKey = "canary=";
  if (query.starts_with(kKey) && query.size() > kKey.size() && query.find('&') == std::string_view::npos) return query.substr(kKey.size());
  return Error{Code::kInvalidArgument, fmt::format("query: must be canary=VERSION, not '{}'", query)};
}

}  // namespace serin::router
