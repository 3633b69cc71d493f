// event_feed.h: Streams the admin API's answers whenever they change: server-sent events (WHATWG HTML, section 9.2).
//
//   event: rollout      data: the answer of GET /v1/rollouts/{service}
//   event: service      data: an element of the answer of GET /v1/services
//
// Each event is a whole state, not a difference. So nothing is queued for a reader: its next event is the state of that moment. A slow
// reader gets fewer events. A reader that reconnects with Last-Event-ID gets the changes since then, once.
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

/// Belongs to one io thread, that of the admin API, `loop`: open() and close() are called there.
class EventFeed {
 public:
  static constexpr size_t kMostReaders = 256;
  struct Times {
    std::chrono::milliseconds look{500};          ///< between two checks for changes, while there is a reader
    std::chrono::milliseconds heartbeat{15'000};  ///< until a comment, if nothing else was sent
    std::chrono::milliseconds longest{300'000};   ///< for one answer: a reader that reconnects sends its token again
  };

  EventFeed(const RouterConfig& config, const Controller& controller, metrics::Registry& metrics)
      : EventFeed(config, controller, metrics, Times()) {}
  EventFeed(const RouterConfig& config, const Controller& controller, metrics::Registry& metrics, Times times);
  ~EventFeed();  ///< after close(), or on its own thread

  /// Events of one service (its index in the configuration), or of all. 503 if there are too many readers.
  net::Response open(net::Loop& loop, std::optional<size_t> service, std::string_view last_event_id);
  /// Ends every answer permanently: the router is stopping.
  void close();

 private:
  class Reader;
  struct Topic {
    std::string text;      // "event: ...\ndata: ..."
    std::string key;       // the part of its data without clocks
    uint64_t version = 0;  // version of the feed at the last change of the key
  };

  void look();
  void update(Topic& topic, std::string_view event, const std::string& data, std::string key);
  void watch(net::Loop& loop);
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
