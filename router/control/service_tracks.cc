// service_tracks.cc: a service with several rollouts at once, seen from one of them. The rules for all of them: tracks.h.

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "router/control/service_control.h"
#include "router/control/wall_clock.h"
#include "router/rollout/draw.h"
#include "router/rollout/machine.h"
#include "router/rollout/spec_parts.h"
#include "runtime/base/log.h"

namespace serin::router {
namespace {

using rollout::Phase;

constexpr std::string_view kSuperseded = "superseded";

/// The weights in force, by track: 0 where no canary is under way.
std::vector<uint32_t> fitted(const std::vector<const ServiceControl*>& tracks) {
  std::vector<uint32_t> under_way;
  std::vector<size_t> of;
  for (size_t i = 0; i < tracks.size(); ++i) {
    const Split split = tracks[i]->split();
    if (split.canary == Split::kNoCanary || split.canary == tracks.front()->split().stable) continue;
    of.push_back(i);
    under_way.push_back(split.weight_ppm);
  }
  rollout::fit_together(under_way);
  std::vector<uint32_t> weights(tracks.size());
  for (size_t i = 0; i < of.size(); ++i) weights[of[i]] = under_way[i];
  return weights;
}

}  // namespace

uint32_t ServiceControl::share_among_tracks(size_t version) const {
  const std::vector<uint32_t> weights = fitted(tracks_);
  uint32_t share = 0, canaries = 0;
  for (size_t i = 0; i < tracks_.size(); ++i) {
    canaries += weights[i];
    if (tracks_[i]->split().canary == version) share += weights[i];
  }
  return version == tracks_.front()->split().stable ? rollout::kAll - canaries : share;
}

/// Of this track's canary, in force.
uint32_t ServiceControl::own_weight() const {
  const std::vector<uint32_t> weights = fitted(tracks_);
  return weights[static_cast<size_t>(std::ranges::find(tracks_, this) - tracks_.begin())];
}

/// Users see the weight in force.
void ServiceControl::show_fitted(rollout::Report& report) const {
  const uint32_t applied = split().weight_ppm, in_force = own_weight();
  if (in_force >= applied) return;
  report.state.weight_ppm = in_force;
  report.note = fmt::format("{} % of {} %: other rollouts of the service run, and stable keeps {} %", rollout::print_weight(in_force),
                            rollout::print_weight(applied), rollout::print_weight(rollout::kStableKeeps));
}

bool ServiceControl::wants_everything() const {
  if (!state_.rollout) return false;
  const rollout::State& state = state_.rollout->state();
  return state.weight_ppm == rollout::kAll || state.phase == Phase::kPromoting || state.phase == Phase::kBaking;
}

ServiceControl::Standing ServiceControl::standing() const {
  const MutexLock lock(mutex_);
  Standing standing{.stable = state_.stable, .runs = state_.rollout.has_value(), .everything = wants_everything()};
  if (!state_.last) return standing;
  const rollout::State& state = state_.rollout ? state_.rollout->state() : state_.last_state();
  standing.id = state.id;
  standing.canary = state.canary;
  standing.promotes_by_hand = state.phase == Phase::kPromoting && state.cause == rollout::kByHand;
  return standing;
}

Status ServiceControl::check_epoch(const std::optional<uint64_t>& if_match) const {
  const MutexLock lock(mutex_);
  return state_.check_epoch(if_match);
}

TrackRollout ServiceControl::track_rollout() const {
  const MutexLock lock(mutex_);
  TrackRollout of{.track = config_.name};
  if (!state_.last) return of;
  of.state = state_.rollout ? state_.rollout->state() : state_.last_state();
  of.spec = state_.last->spec;
  of.started_wall_ms = state_.last->started_wall_ms;
  of.revision = revision_of(of.spec);
  return of;
}

Status ServiceControl::may_replace(const rollout::Spec& spec) const {
  const MutexLock lock(mutex_);
  SERIN_CHECK(check_store());
  SERIN_CHECK(state_.completed(spec));
  return {};
}

bool ServiceControl::supersede(const std::string& why, Time now, const std::string& id) {
  const MutexLock lock(mutex_);
  if (!state_.rollout || (!id.empty() && state_.rollout->state().id != id)) return false;
  const Phase before = state_.rollout->state().phase;
  if (!state_.rollout->trip(std::string(kSuperseded), why)) return false;
  changed(before, {}, "router", {}, now);
  return true;
}

std::optional<uint64_t> ServiceControl::follow_stable(const std::string& version, const std::string& why, Time now) {
  if (!end_promotion(version, now)) (void)supersede(why, now);
  const MutexLock lock(mutex_);
  promotion_.reset();
  if (state_.stable == version) return std::nullopt;
  state_.follow_stable(version);
  spec_.publish(state_.spec);
  apply(without_rises(split(), state_.target()));
  settle();
  log::info("service '{}': stable is version '{}': {}", config_.name, version, why);
  ledger_.note(store::HistoryEntry{.wall_ms = wall_milliseconds(),
                                   .service = config_.name,
                                   .rollout = state_.last ? state_.last_state().id : "",
                                   .event = "stable",
                                   .actor = "router",
                                   .detail = fmt::format("version {} is stable: {}", version, why)});
  return ledger_.add();
}

/// The router that led before made this canary stable, and ended before it wrote that the rollout is over.
bool ServiceControl::end_promotion(const std::string& version, Time now) {
  const MutexLock lock(mutex_);
  if (!state_.rollout || state_.rollout->state().canary != version) return false;
  const Phase before = state_.rollout->state().phase;
  if (!state_.rollout->end_promotion(now)) return false;
  changed(before, {}, "router", {}, now);
  return true;
}

std::optional<std::string> ServiceControl::take_promotion() {
  const MutexLock lock(mutex_);
  return std::exchange(promotion_, std::nullopt);
}

Result<std::string> ServiceControl::may_undo(const Request& request) const {
  const MutexLock lock(mutex_);
  SERIN_CHECK(state_.check_epoch(request.if_match));
  SERIN_CHECK(state_.check_undo());
  SERIN_CHECK(check_store());
  return state_.last_state().stable;
}

void ServiceControl::let_promote(bool allowed) {
  const MutexLock lock(mutex_);
  may_promote_ = allowed;
  settle();
}

void ServiceControl::let_cool_down() {
  const MutexLock lock(mutex_);
  state_.warm.reset();
}

void ServiceControl::learn_from(const ServiceControl& first) {
  RecentLatencies latencies;
  {
    const MutexLock lock(first.mutex_);
    latencies = first.state_.latencies;
  }
  const MutexLock lock(mutex_);
  if (!state_.rollout) state_.latencies = latencies;
}

}  // namespace serin::router
