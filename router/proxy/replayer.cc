#include "router/proxy/replayer.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "router/proxy/classify.h"
#include "router/proxy/kept_call.h"
#include "router/proxy/restore.h"
#include "router/rollout/broken_moment.h"
#include "runtime/base/log.h"

namespace serin::router {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{100};
constexpr size_t kAtOnce = 2;  // stable has its own traffic
/// After a broken answer. All that break at one moment are one event (rollout/broken_moment.h), and a break at the next moment shows that the
/// process lives.
constexpr std::chrono::milliseconds kAfterBreak = rollout::kOneMoment + std::chrono::milliseconds(10);

}  // namespace

/// One recorded request at both arms.
class Replayer::Pair final : public KeptCall::Owner {
 public:
  explicit Pair(Replayer& owner) : owner_(owner), stable_(owner.lane_, *this), canary_(owner.lane_, *this) {}

  bool is_free() const { return left_ == 0; }

  void start(EndpointState& stable, EndpointState& canary, const net::Head& head, const Target& target, const std::string& body) {
    spec_ = owner_.spec_;
    split_ = owner_.split_;
    classes_ = classify(spec_->guard.slices, {.headers = head.headers, .body = body, .complete = true, .length = {}}, owner_.json_);
    endpoints_ = {stable.shared_from_this(), canary.shared_from_this()};
    left_ = 3;  // both, and this call: an answer may come before it returns
    ours_ = false;
    for (const auto& [call, endpoint, version] :
         {std::tuple(&stable_, &stable, split_.stable), std::tuple(&canary_, &canary, split_.canary)}) {
      net::Buffer copy = owner_.lane_.buffers().take();
      copy.append(body);
      owner_.service_.versions[version]->begin(*endpoint);
      call->start(owner_.service_, *endpoint, head, target, std::move(copy));
    }
    finish_one();
  }

  void on_end(KeptCall& call, bool ours) override {
    const bool canary = &call == &canary_;
    owner_.service_.versions[canary ? split_.canary : split_.stable]->end(*endpoints_[canary ? 1 : 0]);
    ours_ = ours_ || ours;
    finish_one();
  }

 private:
  void finish_one() {
    if (--left_ > 0) return;
    if (!ours_) compare_both();
    for (KeptCall* call : {&stable_, &canary_}) call->clear();
    endpoints_ = {};
    spec_.reset();
    classes_.reset();
    // Not from inside a call of the stream.
    owner_.lane_.loop().post([owner = &owner_, alive = std::weak_ptr(owner_.alive_)] {
      if (!alive.expired()) owner->send_more();
    });
  }

  void compare_both() {
    Service& service = owner_.service_;
    service.usual_spread.begin(split_.epoch);
    rollout::ShadowPair pair =
        compare(stable_.half(), canary_.half(), spec_->guard, owner_.lane_.random(), {.usual = &service.usual_spread});
    pair.epoch = split_.epoch;
    pair.classes = with_label(classes_, spec_->guard.slices, pair.difference);
    pair.stable_endpoint = endpoints_[0]->index;
    pair.canary_endpoint = endpoints_[1]->index;
    owner_.replayed_->add();
    if (pair.canary_ending == rollout::Ending::kBroken) owner_.wait();
    service.controller->observe(service.index, pair);
  }

  Replayer& owner_;
  KeptCall stable_, canary_;
  std::array<std::shared_ptr<EndpointState>, 2> endpoints_;
  std::shared_ptr<const rollout::Spec> spec_;
  Split split_;
  rollout::Classes classes_;
  int left_ = 0;
  bool ours_ = false;
};

Replayer::Replayer(Service& service, Lane& lane)
    : service_(service),
      lane_(lane),
      replayed_(service.metrics->counter("serin_route_replayed_total", "Recorded requests that both versions have answered.",
                                         {{"service", service.config->name}})) {
  look();
}

Replayer::~Replayer() = default;

void Replayer::look() {
  const Split split = service_.controller->split(service_.index);
  const bool only_mirrors = split.canary != Split::kNoCanary && split.weight_ppm == 0 && split.shadow_ppm > 0;
  if (!only_mirrors) {
    spec_.reset();
    left_.clear();
  } else if (!spec_ || split.epoch != split_.epoch) {
    spec_ = lane_.spec(service_, split);
    size_t most = spec_ && !spec_->steps.empty() ? spec_->steps.front().replay : 0;
    if (most > 0 && !service_.recorder->begin_replay(service_.config->name, split.epoch)) most = 0;
    left_ = service_.recorder->latest(most, Recorder::Clock::now());
    std::ranges::reverse(left_);
    if (most > 0)
      log::info("service '{}': {} recorded requests are sent to version '{}'", service_.config->name, left_.size(),
                service_.versions[split.canary]->version());
  }
  split_ = split;
  if (spec_) send_more();
  timer_ = lane_.loop().after(kBetweenLooks, [this] { look(); });
}

void Replayer::send_more() {
  while (spec_ && !left_.empty() && !paused_ && send(*left_.back())) left_.pop_back();
}

void Replayer::wait() {
  paused_ = true;
  pause_ = lane_.loop().after(kAfterBreak, [this] {
    paused_ = false;
    send_more();
  });
}

/// False: not now.
bool Replayer::send(const RecordedRequest& request) {
  auto free = std::ranges::find_if(pairs_, [](const auto& pair) { return pair->is_free(); });
  if (free == pairs_.end() && pairs_.size() == kAtOnce) return false;
  const Endpoints &stable = *service_.versions[split_.stable], &canary = *service_.versions[split_.canary];
  if (stable.healthy() == 0 || canary.healthy() == 0) return false;
  net::Head head;
  Target target;
  if (!restore(request, service_of(service_.config->name), head, target)) return true;
  const Time now = lane_.loop().now();
  EndpointState* const of_stable = stable.choose(lane_.endpoints(stable), lane_.random(), now, /*avoid=*/nullptr, target.grpc);
  EndpointState* const of_canary = canary.choose(lane_.endpoints(canary), lane_.random(), now, /*avoid=*/nullptr, target.grpc);
  if (of_stable == nullptr || of_canary == nullptr) return false;
  if (free == pairs_.end()) free = pairs_.insert(pairs_.end(), std::make_unique<Pair>(*this));
  (*free)->start(*of_stable, *of_canary, head, target, request.body);
  return true;
}

}  // namespace serin::router
