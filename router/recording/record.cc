#include "router/recording/record.h"

#include <algorithm>
#include <array>
#include <string>

#include "runtime/protocol/oip/oip_rest.h"

namespace serin::router {
namespace {

constexpr std::array<std::string_view, 7> kOfTheBody{"content-type",         "content-encoding",   "accept", "te", "grpc-encoding",
                                                     "grpc-accept-encoding", protocol::kJsonLength};

bool is_kept(const RecordingConfig& config, std::string_view name) {
  const auto same = [name](std::string_view other) { return net::equal_ignoring_case(name, other); };
  return std::ranges::any_of(kOfTheBody, same) || std::ranges::any_of(config.headers, same);
}

}  // namespace

std::optional<RecordedRequest> record(const RecordingConfig& config, const net::Head& request, std::string_view body,
                                      protocol::JsonPointerReader& json) {
  RecordedRequest made{.method = request.method,
                       .target = request.target.substr(0, request.target.find('?')),  // a query may have a credential
                       .headers = {},
                       .body = std::string(body),
                       .at = {}};
  if (!config.redact.empty()) {
    if (request.headers.has("content-encoding") || request.headers.has(protocol::kJsonLength)) return std::nullopt;
    auto redacted = json.redact(body, config.redact);
    if (!redacted) return std::nullopt;
    made.body = *std::move(redacted);
  }
  for (const net::Header header : request.headers) {
    if (is_kept(config, header.name)) made.headers.emplace_back(header.name, header.value);
  }
  return made;
}

}  // namespace serin::router
