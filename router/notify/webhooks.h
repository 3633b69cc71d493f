// webhooks.h: tells others what has happened to rollouts, and asks them before something does. Threads of its own: who does not answer holds up
// nothing but what waits for him.
//
//   Webhooks webhooks(config.webhooks, store, gatekeeper, registry);
//   webhooks.wake();                                  // something was written to the store
//
// An event is an entry of the audit log. Each receiver gets those that it wants in their order and at least once: one is done when it was answered
// with 2xx, which the store remembers; until then it is sent again after 1 s, 2 s, 4 s ... 5 min, for a day. The queue is the audit log itself.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/config/config.h"
#include "router/rollout/rollout.h"
#include "router/store/store.h"
#include "runtime/base/metrics.h"

namespace serin::router {

/// The rollouts that may wait for somebody. Called on the webhooks' thread.
struct Gatekeeper {
  std::function<std::vector<rollout::State>()> running;
  std::function<void(const rollout::State&, const std::string& who)> confirm;    ///< everybody said yes to the gate that it waits at
  std::function<void(const rollout::State&, const std::string& who)> roll_back;  ///< somebody asked for it
};

class Webhooks {
 public:
  /// All referred to must outlive this.
  Webhooks(const std::vector<WebhookConfig>& webhooks, store::Store& store, Gatekeeper gatekeeper, metrics::Registry& metrics);
  ~Webhooks();  ///< what is under way is awaited, at most one timeout long
  void wake();

 private:
  class Teller;
  class Asker;
  std::vector<std::unique_ptr<Teller>> tellers_;
  std::unique_ptr<Asker> asker_;
};

}  // namespace serin::router
