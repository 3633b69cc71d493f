#include "router/notify/webhook_message.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <chrono>

#include "router/config/signing_keys.h"
#include "router/view/history.h"
#include "runtime/base/base64.h"
#include "runtime/base/schema_json.h"

namespace serin::router {
namespace {

struct CloudEvent {
  std::string_view specversion = "1.0";
  std::string id, source, type, subject, time;
  std::string_view datacontenttype = "application/json";
  view::HistoryEntry data;
};
constexpr auto kCloudEvent = schema::object<CloudEvent>(
    "CloudEvent", "A change of a service, as CloudEvents 1.0.", schema::field("specversion", &CloudEvent::specversion, "Of CloudEvents."),
    schema::field("id", &CloudEvent::id, "Of the entry."), schema::field("source", &CloudEvent::source, "The service."),
    schema::field("type", &CloudEvent::type, "serin.rollout. and the event."),
    schema::field("subject", &CloudEvent::subject, "The rollout."),
    schema::field("time", &CloudEvent::time, "In UTC.", {.kind = "date-time"}),
    schema::field("datacontenttype", &CloudEvent::datacontenttype, "Of the data."),
    schema::field<view::kHistoryEntry>("data", &CloudEvent::data, "The entry of the audit log."));

struct NoMetadata {};
constexpr auto kNoMetadata = schema::object<NoMetadata>("NoMetadata", "Empty; Flagger's receivers expect it.");

struct GateQuestion {
  std::string type, name;
  std::string_view name_space = "serin";
  rollout::Phase phase = rollout::Phase::kProgressing;
  std::string service, rollout, stable, canary;
  int step = 0;
  double weight = 0;
  std::string reason;
  NoMetadata metadata;
};
constexpr auto kGateQuestion = schema::object<GateQuestion>(
    "GateQuestion", "The question at a gate.", schema::field("type", &GateQuestion::type, "The gate."),
    schema::field("name", &GateQuestion::name, "The service."), schema::field("namespace", &GateQuestion::name_space, "Always the same."),
    schema::field("phase", &GateQuestion::phase, "Of the rollout."), schema::field("service", &GateQuestion::service, "Its name."),
    schema::field("rollout", &GateQuestion::rollout, "Its id."), schema::field("stable", &GateQuestion::stable, "The stable version."),
    schema::field("canary", &GateQuestion::canary, "The new version."),
    schema::field("step", &GateQuestion::step, "Index of the current step."),
    schema::field("weight", &GateQuestion::weight, "Of the canary, in percent."),
    schema::field("reason", &GateQuestion::reason, "A sentence for users."),
    schema::field<kNoMetadata>("metadata", &GateQuestion::metadata, ""));

}  // namespace

std::string signature(const std::vector<std::string>& keys, std::string_view id, int64_t unix_seconds, std::string_view body) {
  const std::string content = fmt::format("{}.{}.{}", id, unix_seconds, body);
  std::string value;
  for (const std::string& key : keys) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> code{};
    unsigned int size = 0;
    HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(content.data()), content.size(),
         code.data(), &size);
    value += (value.empty() ? "v1," : " v1,") + encode_base64({reinterpret_cast<const char*>(code.data()), size});
  }
  return value;
}

std::string event_json(const store::HistoryEntry& entry) {
  return schema::to_json(kCloudEvent, {.id = std::to_string(entry.id),
                                       .source = "/serin/services/" + entry.service,
                                       .type = "serin.rollout." + entry.event,
                                       .subject = entry.rollout,
                                       .time = view::utc(entry.wall_ms),
                                       .data = view::view_of(entry)});
}

std::string question_json(std::string_view type, const rollout::State& state) {
  return schema::to_json(kGateQuestion, {.type = std::string(type),
                                         .name = state.service,
                                         .phase = state.phase,
                                         .service = state.service,
                                         .rollout = state.id,
                                         .stable = state.stable,
                                         .canary = state.canary,
                                         .step = state.step,
                                         .weight = view::percent(state.weight_ppm),
                                         .reason = state.reason});
}

Result<net::Outgoing> webhook_request(std::string_view target, std::string_view content_type, std::string_view id,
                                      const std::string& secret, std::string body) {
  const int64_t now = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  net::Outgoing request{.method = "POST", .target = std::string(target)};
  request.headers.set("Content-Type", content_type);
  request.headers.set("User-Agent", "serin");
  request.headers.set("webhook-id", id);
  request.headers.set("webhook-timestamp", std::to_string(now));
  if (!secret.empty()) {
    SERIN_TRY(const auto keys, read_signing_keys(secret));
    request.headers.set("webhook-signature", signature(keys, id, now, body));
  }
  request.body = std::make_shared<const std::string>(std::move(body));
  return request;
}

}  // namespace serin::router
