#include "router/notify/webhook_message.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <chrono>

#include "router/config/signing_keys.h"
#include "router/view/history_json.h"
#include "runtime/net/http.h"

namespace serin::router {
namespace {

using net::json_quote;

std::string base64(const unsigned char* bytes, size_t size) {
  std::string text(4 * ((size + 2) / 3), '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes, static_cast<int>(size));
  return text;
}

}  // namespace

std::string signature(const std::vector<std::string>& keys, std::string_view id, int64_t unix_seconds, std::string_view body) {
  const std::string content = fmt::format("{}.{}.{}", id, unix_seconds, body);
  std::string value;
  for (const std::string& key : keys) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> code{};
    unsigned int size = 0;
    HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(content.data()), content.size(),
         code.data(), &size);
    value += (value.empty() ? "v1," : " v1,") + base64(code.data(), size);
  }
  return value;
}

std::string event_json(const store::HistoryEntry& entry) {
  return fmt::format(
      R"({{"specversion":"1.0","id":"{}","source":{},"type":{},"subject":{},"time":"{}","datacontenttype":"application/json","data":{}}})",
      entry.id, json_quote("/serin/services/" + entry.service), json_quote("serin.rollout." + entry.event), json_quote(entry.rollout),
      utc(entry.wall_ms), history_entry_json(entry));
}

std::string question_json(std::string_view type, const rollout::State& state) {
  return fmt::format(
      R"({{"type":"{}","name":{},"namespace":"serin","phase":"{}","service":{},"rollout":{},"stable":{},"canary":{},"step":{},"weight":{},)"
      R"("reason":{},"metadata":{{}}}})",
      type, json_quote(state.service), rollout::phase_name(state.phase), json_quote(state.service), json_quote(state.id),
      json_quote(state.stable), json_quote(state.canary), state.step, percent(state.weight_ppm), json_quote(state.reason));
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
