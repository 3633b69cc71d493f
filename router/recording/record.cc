#include "router/recording/record.h"

#include <algorithm>
#include <array>
#include <string>

#include "runtime/base/number.h"
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
  RecordedRequest made{.method = request.method, .target = request.target, .headers = {}, .body = std::string(body), .at = {}};
  const std::string_view json_length = request.headers.get(protocol::kJsonLength);
  std::string new_length;
  if (!config.redact.empty()) {
    const auto bytes = json_length.empty() ? std::optional<uint64_t>(body.size()) : parse_number<uint64_t>(json_length);
    if (!bytes || *bytes > body.size() || request.headers.has("content-encoding")) return std::nullopt;
    auto redacted = json.redact(body.substr(0, static_cast<size_t>(*bytes)), config.redact);
    if (!redacted) return std::nullopt;
    new_length = std::to_string(redacted->size());
    made.body = *std::move(redacted) + std::string(body.substr(static_cast<size_t>(*bytes)));
  }
  for (const net::Header header : request.headers) {
    if (!is_kept(config, header.name)) continue;
    const bool is_length = !new_length.empty() && net::equal_ignoring_case(header.name, protocol::kJsonLength);
    made.headers.emplace_back(header.name, is_length ? new_length : std::string(header.value));
  }
  return made;
}

}  // namespace serin::router
