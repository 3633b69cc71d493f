// webhooks.h: Notifies external receivers of rollout events, and asks them before certain actions.
//
// It has its own threads: a receiver that does not answer delays only the actions that wait for it.
//
//   Webhooks webhooks(config.webhooks, store, gatekeeper, registry);
//   webhooks.wake();                                  // something was written to the store
//
// An event is an entry of the audit log. Each receiver gets the events it subscribes to, in order and at least once. An event is delivered
// when the receiver answers 2xx; the store remembers that. Until then it is sent again after 1 s, 2 s, 4 s ... 5 min, for a day. The queue
// is the audit log itself.
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

/// The rollouts that may wait for a confirmation. Called on the webhooks' thread.
struct Gatekeeper {
  std::function<std::vector<rollout::State>()> running;
  std::function<void(const rollout::State&, const std::string& who)> confirm;    ///< every receiver confirmed the gate it waits at
  std::function<void(const rollout::State&, const std::string& who)> roll_back;  ///< a receiver requested it
};

class Webhooks {
 public:
  /// All references must outlive this.
  Webhooks(const std::vector<WebhookConfig>& webhooks, store::Store& store, Gatekeeper gatekeeper, metrics::Registry& metrics);
  ~Webhooks();  ///< waits for requests in progress, at most one timeout
  void wake();

 private:
  class Teller;
  class Asker;
  std::vector<std::unique_ptr<Teller>> tellers_;
  std::unique_ptr<Asker> asker_;
};

}  // namespace serin::router
