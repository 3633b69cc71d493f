// leadership.h: One service among several routers that share it: whether this router leads, what the others follow, and what they need to
// know.
//
// A router that is alone always leads, and everybody agrees. Not thread-safe: ServiceControl locks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "router/control/sightings.h"
#include "router/rollout/rollout.h"
#include "router/store/shared_store.h"
#include "runtime/base/result.h"

namespace serin::router {

class Leadership {
 public:
  /// `routers`: the maximum number that share the service; 0: this one is alone.
  Leadership(std::string service, int routers) : service_(std::move(service)), alone_(routers == 0), leading_(alone_), agreed_(alone_) {}

  bool leading() const { return leading_; }
  /// Every other router follows the last change, and this one leads.
  bool agreed() const { return leading_ && agreed_; }
  /// Only the leader changes a rollout; to end it, no other router is needed.
  Status check_leads() const;
  /// kUnavailable names the routers that do not follow the last change.
  Status check_agreed() const;

  void lead(bool leading);
  /// `waits_for`: the routers that do not follow, for display.
  void agree(bool agreed, std::string waits_for);
  /// A change was written to the shared store: the others do not follow it yet.
  void wrote_shared() { agreed_ = agreed_ && alone_; }

  /// Queues a verdict of this router for the others.
  void tell(const rollout::State& state, const std::string& verdict);
  std::vector<store::Trip> take_trips() { return std::exchange(trips_, {}); }

  // Answers that this router judged, for the leader. `at`: the state of the running rollout.
  void note(const rollout::State& at, const rollout::Observation& observation);
  void note(const rollout::State& at, const rollout::ShadowPair& pair);
  Sightings take_sightings();
  void forget_sightings() { sightings_ = {}; }

 private:
  bool has_room(const rollout::State& at);

  const std::string service_;
  const bool alone_;
  bool leading_, agreed_;
  std::string waits_for_;
  std::vector<store::Trip> trips_;
  Sightings sightings_;
};

}  // namespace serin::router
