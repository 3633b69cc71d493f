#include "router/control/tracks.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

namespace serin::router {

using Standing = ServiceControl::Standing;

Tracks::Tracks(std::vector<ServiceControl*> tracks) : all_(std::move(tracks)) {
  for (ServiceControl* track : all_) track->share_with({all_.begin(), all_.end()});
}

bool Tracks::keep_together(Time now) {
  const MutexLock lock(mutex_);
  return join(now);
}

bool Tracks::join(Time now) {
  const auto further = std::views::drop(all_, 1);
  if (!first().leads()) {  // the leader's records say all of it
    for (ServiceControl* track : further) (void)track->take_promotion();
    return false;
  }
  bool changed = false;
  for (ServiceControl* track : further)
    if (const auto version = track->take_promotion())
      changed = first().follow_stable(*version, fmt::format("promoted by rollout '{}'", track->standing().id), now) || changed;
  const std::string stable = first().standing().stable;
  for (ServiceControl* track : further)
    if (track->standing().stable != stable)
      changed = track->follow_stable(stable, fmt::format("version '{}' is stable now", stable), now) || changed;
  return end_for_promotion(now) || changed;
}

/// A promotion by hand ends the others. Otherwise none is promoted while another one runs.
bool Tracks::end_for_promotion(Time now) {
  bool changed = false;
  std::vector<Standing> at;
  at.reserve(all_.size());
  for (const ServiceControl* track : all_) at.push_back(track->standing());
  const auto chosen = std::ranges::find_if(at, &Standing::promotes_by_hand);
  for (size_t i = 0; i < all_.size(); ++i)
    if (chosen != at.end() && &at[i] != &*chosen)
      changed =
          all_[i]->supersede(fmt::format("version '{}' is promoted by hand by rollout '{}'", chosen->canary, chosen->id), now) || changed;
  const auto running = std::ranges::count_if(all_, [](const ServiceControl* track) { return track->standing().runs; });
  for (ServiceControl* track : all_) {
    track->let_promote(running < 2);
    if (running > 0) track->let_cool_down();
  }
  return changed;
}

Result<ServiceControl*> Tracks::track_for(const rollout::Spec& spec) const {
  for (ServiceControl* track : all_)
    if (track != &first() && track->config().name == spec.service) return track;
  const auto idle = std::ranges::find_if(all_, [](const ServiceControl* track) { return !track->standing().runs; });
  if (idle != all_.end()) return *idle;
  return Error{Code::kFailedPrecondition, fmt::format("service '{}' has {} rollouts in progress, as many as router.yaml permits: end one "
                                                      "before another starts",
                                                      spec.service, all_.size())};
}

Status Tracks::check_beside_others(const rollout::Spec& spec, const ServiceControl& chosen) const {
  for (ServiceControl* track : all_) {
    const Standing other = track->standing();
    if (track == &chosen || !other.runs) continue;
    track->let_promote(false);  // from here on; join() permits it again where nothing comes of this start
    if (track->standing().everything)
      return Error{Code::kFailedPrecondition, fmt::format("rollout '{}' is being promoted: wait for its end", other.id)};
    if (!track->spec()->baseline.empty())
      return Error{Code::kFailedPrecondition, fmt::format("rollout '{}' has a baseline arm, and no other runs at the same time", other.id)};
    if (other.canary == spec.canary)
      return Error{Code::kInvalidArgument, fmt::format("version '{}' is the canary of rollout '{}' already", spec.canary, other.id)};
    // One answer of stable is compared with every canary, so it has one deadline.
    if (track->spec()->guard.deadline != spec.guard.deadline)
      return Error{Code::kInvalidArgument,
                   fmt::format("guard.latency.deadline must be the one of rollout '{}', which runs at the same time", other.id)};
  }
  return {};
}

Result<ServiceControl::Done> Tracks::start(rollout::Spec spec, Request request, Time now, ServiceControl*& chosen) {
  const MutexLock lock(mutex_);
  (void)join(now);
  SERIN_TRY(chosen, track_for(spec));
  SERIN_CHECK(check_beside_others(spec, *chosen));
  if (chosen != &first()) {
    if (request.if_match && spec.service == first().config().name) {
      SERIN_CHECK(first().check_epoch(request.if_match));
      request.if_match.reset();
    }
    spec.service = chosen->config().name;
    // Two rollouts must not place the keys alike.
    if (spec.sticky.on()) spec.sticky.salt += chosen->config().name;
    chosen->learn_from(first());
  }
  return chosen->start(std::move(spec), request, now);
}

Result<ServiceControl::Done> Tracks::undo(ServiceControl& track, const Request& request, Time now, uint64_t& of_first) {
  const MutexLock lock(mutex_);
  (void)join(now);
  SERIN_TRY(const std::string version, track.may_undo(request));
  const std::string why = fmt::format("rollout '{}' was undone", track.standing().id);
  if (&track != &first())  // it moves the requests, so it is the first to be written
    of_first = first().follow_stable(version, why, now).value_or(0);
  SERIN_TRY(const Done done, track.undo(request, now));
  for (ServiceControl* each : all_)
    if (each != &track) (void)each->follow_stable(version, why, now);
  return done;
}

}  // namespace serin::router
