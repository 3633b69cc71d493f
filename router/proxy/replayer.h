// replayer.h: Sends recorded requests to stable and to the canary before the canary gets any traffic, and compares the answers.
//
// A specification asks for it: {shadow: {percent: 10, replay: 500}} as the first step. Stable is asked again, too: it may be another version
// by now, and what was redacted may change the answer. Belongs to one io thread.
#pragma once

#include <memory>
#include <vector>

#include "router/proxy/service.h"
#include "router/recording/recorder.h"
#include "runtime/net/loop.h"
#include "runtime/protocol/json/json_pointer.h"

namespace serin::router {

class Replayer {
 public:
  Replayer(Service& service, Lane& lane);
  ~Replayer();

 private:
  class Pair;

  void look();
  void send_more();
  void wait();
  bool send(const RecordedRequest& request);

  Service& service_;
  Lane& lane_;
  Split split_;
  std::shared_ptr<const rollout::Spec> spec_;  // of the rollout for which it sends; null: none
  Recording left_;                             // newest last
  std::vector<std::unique_ptr<Pair>> pairs_;   // all that there are: some may be free
  protocol::JsonPointerReader json_;
  std::shared_ptr<metrics::Counter> replayed_;
  bool paused_ = false;
  net::Timer timer_, pause_;
  std::shared_ptr<void> alive_ = std::make_shared<int>();  // posted work may come after destruction
};

}  // namespace serin::router
