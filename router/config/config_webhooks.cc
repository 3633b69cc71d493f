// config_webhooks.cc: `webhooks:` of router.yaml.
//
//   webhooks:
//     - {name: chat, type: event, url: "http://hooks.internal:9000/serin", secret: hook.secret, events: [rolled_back, promoted]}
//     - {name: board, type: confirm-promotion, url: "https://board.internal/may", tls: {ca: ca.crt}, services: [digits]}
//
// They are part of router.yaml and not of a rollout's specification, because a caller that may start a rollout must not choose where the
// router sends requests.

#include "router/config/config_webhooks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "router/config/config_tls.h"
#include "router/config/signing_keys.h"

namespace serin::router {
namespace {

using config::Node;
using Type = WebhookConfig::Type;
using std::chrono::milliseconds;

constexpr size_t kMostWebhooks = 16;
constexpr std::array<std::pair<std::string_view, Type>, 5> kTypes = {{{"event", Type::kEvent},
                                                                      {"confirm-rollout", Type::kConfirmRollout},
                                                                      {"confirm-traffic-increase", Type::kConfirmIncrease},
                                                                      {"confirm-promotion", Type::kConfirmPromotion},
                                                                      {"rollback", Type::kRollback}}};

Status read_url(const Node& owner, WebhookConfig& webhook) {
  SERIN_TRY(const Node node, owner.at("url"));
  SERIN_TRY(const std::string text, node.text());
  const auto url = net::parse_url(text);
  if (!url) return node.error("must be a URL such as https://HOST:PORT/PATH");
  webhook.origin = url->origin;
  webhook.target = url->path;
  SERIN_TRY(webhook.tls, read_client_tls(owner, url->origin.secure));
  return {};
}

Result<std::vector<std::string>> read_words(const Node& owner, std::string_view key) {
  std::vector<std::string> words;
  const auto list = owner.find(key);
  if (!list) return words;
  for (const Node& item : list->items()) {
    SERIN_TRY(std::string word, item.text());
    words.push_back(std::move(word));
  }
  return words.empty() ? Result<std::vector<std::string>>(list->error("must be a list of one or more")) : words;
}

Result<milliseconds> read_wait(const Node& owner, std::string_view key, milliseconds fallback) {
  SERIN_TRY(const auto duration, owner.duration(key, fallback));
  if (duration < milliseconds(10) || duration > std::chrono::hours(1)) return owner.find(key)->error("must be from 10ms to 1h");
  return std::chrono::duration_cast<milliseconds>(duration);
}

Result<WebhookConfig> read_webhook(const Node& node, const RouterConfig& config) {
  SERIN_CHECK(node.allow_only({"name", "type", "url", "tls", "secret", "events", "services", "timeout", "interval"}));
  WebhookConfig webhook;
  SERIN_TRY(const Node name, node.at("name"));
  SERIN_TRY(webhook.name, name.text());
  if (webhook.name.empty() || webhook.name.size() > 64 || webhook.name.find_first_of(" \t\n\"'") != std::string::npos)
    return name.error("must be a name of 1 to 64 characters without spaces and quotes");
  SERIN_TRY(const Node type, node.at("type"));
  SERIN_TRY(const std::string word, type.one_of({"event", "confirm-rollout", "confirm-traffic-increase", "confirm-promotion", "rollback"}));
  webhook.type = std::ranges::find(kTypes, std::string_view(word), [](const auto& entry) { return entry.first; })->second;
  SERIN_CHECK(read_url(node, webhook));
  SERIN_TRY(webhook.secret, node.text("secret", ""));
  if (const auto secret = node.find("secret")) {
    if (const auto keys = read_signing_keys(webhook.secret); !keys) return secret->error(keys.error().message);
  }
  SERIN_TRY(webhook.events, read_words(node, "events"));
  if (const auto events = node.find("events"); events && webhook.type != Type::kEvent) return events->error("belongs to the type event");
  SERIN_TRY(webhook.services, read_words(node, "services"));
  for (const std::string& service : webhook.services)
    if (service.find(kTrackMark) != std::string::npos ||
        std::ranges::find(config.services, service, &ServiceConfig::name) == config.services.end())
      return node.find("services")->error(fmt::format("no service '{}'", service));
  SERIN_TRY(webhook.timeout, read_wait(node, "timeout", webhook.timeout));
  SERIN_TRY(webhook.interval, read_wait(node, "interval", webhook.interval));
  return webhook;
}

void open_gates(const WebhookConfig& webhook, std::vector<ServiceConfig>& services) {
  for (ServiceConfig& service : services) {
    if (!webhook.services.empty() && std::ranges::find(webhook.services, service_of(service.name)) == webhook.services.end()) continue;
    service.gates.rollout |= webhook.type == Type::kConfirmRollout;
    service.gates.increase |= webhook.type == Type::kConfirmIncrease;
    service.gates.promotion |= webhook.type == Type::kConfirmPromotion;
  }
}

}  // namespace

std::string_view webhook_type_name(Type type) {
  return std::ranges::find(kTypes, type, [](const auto& entry) { return entry.second; })->first;
}

Status read_webhooks(const Node& list, RouterConfig& config) {
  const auto items = list.items();
  if (!list.is_list() || items.size() > kMostWebhooks)
    return list.error(fmt::format("must be a list of at most {} entries such as {{name: chat, type: event, url: ...}}", kMostWebhooks));
  for (const Node& item : items) {
    SERIN_TRY(WebhookConfig webhook, read_webhook(item, config));
    if (std::ranges::find(config.webhooks, webhook.name, &WebhookConfig::name) != config.webhooks.end())
      return item.error(fmt::format("name '{}' given twice", webhook.name));
    open_gates(webhook, config.services);
    config.webhooks.push_back(std::move(webhook));
  }
  return {};
}

}  // namespace serin::router
