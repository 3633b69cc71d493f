// event_feed.cc: reads the state once every half second for all readers together, and not at all while there are no readers.

#include "router/admin/event_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "router/view/status_json.h"
#include "runtime/base/number.h"
#include "runtime/net/body_source.h"

namespace serin::router {
namespace {

constexpr std::chrono::milliseconds kComeBackAfter{1000};  // what a browser's EventSource waits before it asks again

std::string random_word() {
  std::random_device entropy;
  return fmt::format("{:08x}{:08x}", entropy(), entropy());
}

/// What changes with time alone is no change.
ServiceStatus without_clock(ServiceStatus status) {
  status.rollout_seconds = status.recent_stable.seconds = status.recent_canary.seconds = 0;
  if (status.warm) status.warm->seconds = 0;
  if (!status.rollout) return status;
  status.rollout->step_seconds = 0;
  status.rollout->step_eta_seconds.reset();
  return status;
}

}  // namespace

/// One client. It knows how far it has read, and nothing else.
class EventFeed::Reader final : public net::BodySource {
 public:
  Reader(EventFeed& feed, const net::Loop& loop, std::optional<size_t> service, uint64_t seen)
      : feed_(&feed), loop_(loop), service_(service), seen_(seen), until_(loop.now() + feed.times_.longest) {
    feed.readers_.insert(this);
    feed.reading_->set(static_cast<double>(feed.readers_.size()));
  }
  ~Reader() override {
    if (feed_ == nullptr) return;
    feed_->readers_.erase(this);
    feed_->reading_->set(static_cast<double>(feed_->readers_.size()));
  }

  void begin(std::function<void()> more) override { more_ = std::move(more); }

  std::optional<std::string> pull() override {
    if (feed_ == nullptr || loop_.now() >= until_) return std::nullopt;
    std::string text = std::exchange(opening_, "");
    for (const Topic* topic : unread()) {
      text += fmt::format("{}id: {}\n\n", topic->text, feed_->event_id(topic->version));
      seen_ = topic->version;
    }
    if (text.empty() && loop_.now() >= silent_until_) text = ": still here\n\n";
    if (!text.empty()) silent_until_ = loop_.now() + feed_->times_.heartbeat;
    return text;
  }

  void wake() const {
    if (more_) more_();
  }
  /// pull() says the end from now on.
  void leave() {
    feed_ = nullptr;
    wake();
  }

 private:
  /// In the order of their changes: whoever breaks off after one of them has read all before it.
  std::vector<const Topic*> unread() const {
    std::vector<const Topic*> list;
    for (size_t i = 0; i < feed_->topics_.size(); ++i)
      if ((!service_ || i / 2 == *service_) && feed_->topics_[i].version > seen_) list.push_back(&feed_->topics_[i]);
    std::ranges::sort(list, {}, &Topic::version);
    return list;
  }

  EventFeed* feed_;
  const net::Loop& loop_;
  const std::optional<size_t> service_;
  uint64_t seen_;
  std::string opening_ = fmt::format("retry: {}\n\n", kComeBackAfter.count());
  std::chrono::steady_clock::time_point until_, silent_until_{};
  std::function<void()> more_;
};

EventFeed::EventFeed(const RouterConfig& config, const Controller& controller, metrics::Registry& metrics, Times times)
    : config_(config),
      controller_(controller),
      times_(times),
      boot_(random_word()),
      topics_(2 * config.services.size()),
      reading_(metrics.gauge("serin_route_event_readers", "Clients that read server-sent events of the admin API.")) {}

EventFeed::~EventFeed() { close(); }

net::Response EventFeed::open(net::Loop& loop, std::optional<size_t> service, std::string_view last_event_id) {
  if (closed_ || readers_.size() >= kMostReaders) {
    net::Response full = net::json_error(503, closed_ ? "the router is ending" : "too many clients read events");
    full.headers.set("Retry-After", "5");
    return full;
  }
  look();
  if (readers_.empty()) watch(loop);
  net::Response response;
  response.headers.set("Content-Type", "text/event-stream");
  response.headers.set("Cache-Control", "no-store");
  response.source = std::make_shared<Reader>(*this, loop, service, version_of(last_event_id));
  return response;
}

void EventFeed::close() {
  closed_ = true;
  timer_.cancel();
  for (Reader* reader : std::exchange(readers_, {})) reader->leave();
  reading_->set(0);
}

void EventFeed::watch(net::Loop& loop) {
  timer_ = loop.after(times_.look, [this, &loop] {
    if (readers_.empty()) return;
    look();
    for (const Reader* reader : readers_) reader->wake();
    watch(loop);
  });
}

void EventFeed::look() {
  const auto statuses = controller_.status();
  for (size_t i = 0; i < statuses.size(); ++i) {
    if (!is_shown(config_.services[i], statuses[i])) continue;
    const std::string service = service_json(config_.services[i], statuses[i], controller_, i);
    update(topics_[2 * i], "service", service, service);
    update(topics_[2 * i + 1], "rollout", status_json(statuses[i]), status_json(without_clock(statuses[i])));
  }
}

void EventFeed::update(Topic& topic, std::string_view event, const std::string& data, std::string key) {
  topic.text = fmt::format("event: {}\ndata: {}\n", event, data);
  if (key == topic.key) return;
  topic.key = std::move(key);
  topic.version = ++version_;
}

std::string EventFeed::event_id(uint64_t version) const { return fmt::format("{}-{}", boot_, version); }

/// 0, all is new, where another process gave it.
uint64_t EventFeed::version_of(std::string_view event_id) const {
  if (!event_id.starts_with(boot_) || event_id.size() <= boot_.size() || event_id[boot_.size()] != '-') return 0;
  return std::min(parse_number<uint64_t>(event_id.substr(boot_.size() + 1)).value_or(0), version_);
}

}  // namespace serin::router
