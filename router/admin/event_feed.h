// event_feed.h: what the admin API says, said again whenever it has changed: server-sent events (WHATWG HTML, section 9.2).
//
//   event: rollout      data: what GET /v1/rollouts/{service} answers
//   event: service      data: an element of what GET /v1/services answers
//
// Each event is a whole state, not a difference. So nothing is ever queued for a reader: what it is sent next is the state of that moment, whoever
// reads slowly sees fewer of them, and whoever comes back with Last-Event-ID gets what has changed since, once.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "router/config/config.h"
#include "router/control/controller.h"
#include "runtime/base/metrics.h"
#include "runtime/net/http.h"
#include "runtime/net/loop.h"

namespace serin::router {

/// Belongs to one io thread, that of the admin API: open() and close() are called there.
class EventFeed {
 public:
  static constexpr size_t kMostReaders = 256;
  struct Times {
    std::chrono::milliseconds look{500};          ///< between two looks for changes, while somebody reads
    std::chrono::milliseconds heartbeat{15'000};  ///< until a comment, where nothing else was to be said
    std::chrono::milliseconds longest{300'000};   ///< of one answer: who comes back shows his token again
  };

  EventFeed(const RouterConfig& config, const Controller& controller, metrics::Registry& metrics)
      : EventFeed(config, controller, metrics, Times()) {}
  EventFeed(const RouterConfig& config, const Controller& controller, metrics::Registry& metrics, Times times);
  ~EventFeed();  ///< after close(), or from the thread that it belongs to

  /// Events of one service (its index in the configuration), or of all. 503 where there are too many readers.
  net::Response open(std::optional<size_t> service, std::string_view last_event_id);
  /// Ends every answer, for good: the router is ending.
  void close();

 private:
  class Reader;
  struct Topic {
    std::string text;      // "event: ...\ndata: ..."
    std::string key;       // of its data what is no clock
    uint64_t version = 0;  // of the feed when the key changed
  };

  void look();
  void update(Topic& topic, std::string_view event, const std::string& data, std::string key);
  void watch();
  std::string event_id(uint64_t version) const;
  uint64_t version_of(std::string_view event_id) const;

  const RouterConfig& config_;
  const Controller& controller_;
  const Times times_;
  const std::string boot_;     // another process counts from 0 again
  std::vector<Topic> topics_;  // two for each service
  uint64_t version_ = 0;
  std::set<Reader*> readers_;
  net::Timer timer_;
  bool closed_ = false;
  const std::shared_ptr<metrics::Gauge> reading_;
};

}  // namespace serin::router
