// webhooks.cc: one thread for each receiver of events, one for all gates.

#include "router/notify/webhooks.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <map>
#include <thread>

#include "router/notify/webhook_message.h"
#include "runtime/base/log.h"
#include "runtime/base/sleeper.h"
#include "runtime/net/session.h"

namespace serin::router {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Type = WebhookConfig::Type;

constexpr std::chrono::seconds kFirstPause{1}, kLongestPause{300};
constexpr std::chrono::hours kPatience{24};
constexpr milliseconds kLook{100};
constexpr size_t kMessagesAtOnce = 100;

bool concerns(const std::vector<std::string>& list, std::string_view name) {
  return list.empty() || std::ranges::find(list, name) != list.end();
}

/// 2xx, or what came instead.
Status send(const WebhookConfig& webhook, std::string_view content_type, const std::string& id, std::string body) {
  SERIN_TRY(const net::Outgoing request, webhook_request(webhook.target, content_type, id, webhook.secret, std::move(body)));
  SERIN_TRY(const net::Response response, net::fetch(webhook.origin, request, webhook.timeout, webhook.tls));
  if (response.status / 100 == 2) return {};
  return Error{Code::kFailedPrecondition, fmt::format("answered {}", response.status)};
}

}  // namespace

class Webhooks::Teller {
 public:
  Teller(const WebhookConfig& webhook, store::Store& store, metrics::Registry& metrics)
      : webhook_(webhook), store_(store), note_("webhook/" + webhook.name) {
    const auto counter = [&](const char* result) {
      return metrics.counter("serin_webhook_events_total", "Events for webhooks, by the result of an attempt to send them.",
                             {{"webhook", webhook.name}, {"result", result}});
    };
    told_ = counter("told");
    failed_ = counter("failed");
    given_up_ = counter("given_up");
    behind_ = metrics.gauge_callback(
        "serin_webhook_behind_seconds", "For how long an event has waited to be sent; 0: none waits.", {{"webhook", webhook.name}}, [this] {
          const auto since = waits_since_.load();
          return since == Clock::time_point() ? 0 : std::chrono::duration<double>(Clock::now() - since).count();
        });
    thread_ = std::thread([this] { run(); });
  }
  ~Teller() {
    sleeper_.end();
    thread_.join();
  }
  void wake() { sleeper_.wake(); }

 private:
  void run() {
    while (!begin()) {
      if (!sleeper_.pause(kFirstPause)) return;
    }
    while (tell_what_is_new() && sleeper_.wait(std::chrono::seconds(10))) {
    }
  }

  /// Where the last run got to; a receiver that is new hears of what happens from now on.
  bool begin() {
    const auto note = store_.note(note_);
    if (!note) return false;
    if (*note) {
      std::from_chars((*note)->data(), (*note)->data() + (*note)->size(), seen_);
      return true;
    }
    while (true) {
      const auto entries = store_.history_after(seen_, store::kHistoryLimit);
      if (!entries) return false;
      if (entries->empty()) return store_.set_note(note_, std::to_string(seen_)).has_value();
      seen_ = entries->back().id;
    }
  }

  /// False: the end has come meanwhile.
  bool tell_what_is_new() {
    while (true) {
      const auto entries = store_.history_after(seen_, kMessagesAtOnce);
      if (!entries || entries->empty()) return true;
      for (const store::HistoryEntry& entry : *entries) {
        if (concerns(webhook_.services, service_of(entry.service)) && concerns(webhook_.events, entry.event) && !tell(entry)) return false;
        seen_ = entry.id;
      }
    }
  }

  bool tell(const store::HistoryEntry& entry) {
    const Clock::time_point began = Clock::now();
    waits_since_ = began;
    std::chrono::seconds pause = kFirstPause;
    while (true) {
      const Status told = send(webhook_, "application/cloudevents+json", fmt::format("serin-{}", entry.id), event_json(entry));
      (told ? told_ : failed_)->add();
      const bool given_up = !told && Clock::now() - began > kPatience;
      if (given_up) given_up_->add();
      if (!told)
        log::warning("webhook '{}': event {} ({}): {}{}", webhook_.name, entry.id, entry.event, told.error().message,
                     given_up ? "; given up after a day" : "");
      if (told || given_up) {
        waits_since_ = Clock::time_point();
        (void)store_.set_note(note_, std::to_string(entry.id));  // not written: told again after a restart
        return true;
      }
      if (!sleeper_.pause(pause)) return false;
      pause = std::min(2 * pause, kLongestPause);
    }
  }

  const WebhookConfig& webhook_;
  store::Store& store_;
  const std::string note_;
  int64_t seen_ = 0;
  std::atomic<Clock::time_point> waits_since_{Clock::time_point()};  // that: nothing waits
  std::shared_ptr<metrics::Counter> told_, failed_, given_up_;
  std::shared_ptr<void> behind_;
  Sleeper sleeper_;
  std::thread thread_;
};

class Webhooks::Asker {
 public:
  Asker(std::vector<const WebhookConfig*> webhooks, Gatekeeper gatekeeper)
      : webhooks_(std::move(webhooks)), gatekeeper_(std::move(gatekeeper)), thread_([this] { run(); }) {}
  ~Asker() {
    sleeper_.end();
    thread_.join();
  }

 private:
  void run() {
    while (sleeper_.pause(kLook)) {
      const auto running = gatekeeper_.running();
      std::erase_if(answers_, [&](const auto& entry) {
        return std::ranges::none_of(running,
                                    [&](const rollout::State& state) { return key_of(state, *entry.first.second) == entry.first.first; });
      });
      for (const rollout::State& state : running) {
        ask_for_rollback(state);
        ask_at_gate(state);
      }
    }
  }

  struct Answer {
    bool yes = false;
    Clock::time_point ask_again{};
    std::string complaint;  // said once, until another
  };

  /// A yes holds for one gate at one step of one rollout.
  static std::string key_of(const rollout::State& state, const WebhookConfig& webhook) {
    return webhook.type == Type::kRollback ? state.id : fmt::format("{} {} {}", state.id, state.cause, state.step);
  }

  Answer& ask(const rollout::State& state, const WebhookConfig& webhook) {
    const std::string key = key_of(state, webhook);
    Answer& answer = answers_[{key, &webhook}];
    const Clock::time_point now = Clock::now();
    if (answer.yes || now < answer.ask_again) return answer;
    answer.ask_again = now + webhook.interval;
    const std::string_view type = webhook_type_name(webhook.type);
    const Status said =
        send(webhook, "application/json", fmt::format("serin-{}-{}-{}", state.id, type, state.step), question_json(type, state));
    answer.yes = said.has_value();
    const std::string complaint = said ? "" : said.error().message;
    if (complaint != answer.complaint && webhook.type != Type::kRollback && !complaint.empty())
      log::info("rollout '{}': {} of webhook '{}': {}; it waits", state.id, type, webhook.name, complaint);
    answer.complaint = complaint;
    return answer;
  }

  void ask_at_gate(const rollout::State& state) {
    std::string who;
    for (const WebhookConfig* webhook : webhooks_) {
      if (webhook_type_name(webhook->type) != state.cause || state.phase != rollout::Phase::kPaused) continue;
      if (!concerns(webhook->services, service_of(state.service))) continue;
      if (!ask(state, *webhook).yes) return;
      who += (who.empty() ? "webhook " : ", ") + webhook->name;
    }
    if (!who.empty()) gatekeeper_.confirm(state, who);
  }

  void ask_for_rollback(const rollout::State& state) {
    for (const WebhookConfig* webhook : webhooks_)
      if (webhook->type == Type::kRollback && concerns(webhook->services, service_of(state.service)) && ask(state, *webhook).yes)
        return gatekeeper_.roll_back(state, "webhook " + webhook->name);
  }

  const std::vector<const WebhookConfig*> webhooks_;
  const Gatekeeper gatekeeper_;
  std::map<std::pair<std::string, const WebhookConfig*>, Answer> answers_;
  Sleeper sleeper_;
  std::thread thread_;
};

Webhooks::Webhooks(const std::vector<WebhookConfig>& webhooks, store::Store& store, Gatekeeper gatekeeper, metrics::Registry& metrics) {
  std::vector<const WebhookConfig*> asked;
  for (const WebhookConfig& webhook : webhooks) {
    if (webhook.type == Type::kEvent)
      tellers_.push_back(std::make_unique<Teller>(webhook, store, metrics));
    else
      asked.push_back(&webhook);
  }
  if (!asked.empty()) asker_ = std::make_unique<Asker>(std::move(asked), std::move(gatekeeper));
}

Webhooks::~Webhooks() = default;

void Webhooks::wake() {
  for (const auto& teller : tellers_) teller->wake();
}

}  // namespace serin::router
