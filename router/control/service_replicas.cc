// service_replicas.cc: a service that several routers share. See service_state.h for who judges what.

#include <fmt/format.h>

#include <algorithm>

#include "router/control/service_control.h"
#include "router/rollout/broken_moment.h"
#include "runtime/base/log.h"

namespace serin::router {
namespace {

constexpr size_t kAtOnce = 64;  // then the data path has its turn

/// The part of `target` that may be applied although no majority agreed on it: nothing rises.
Split lower_of(const Split& applied, Split target) {
  const bool same_canary = applied.canary == target.canary && applied.stable == target.stable;
  target.weight_ppm = same_canary ? std::min(applied.weight_ppm, target.weight_ppm) : 0;
  target.shadow_ppm = same_canary ? std::min(applied.shadow_ppm, target.shadow_ppm) : 0;
  return target;
}

/// Messages take their time.
rollout::Observation told(rollout::Observation observation) {
  observation.late = rollout::kOtherRouter;
  return observation;
}
const rollout::ShadowPair& told(const rollout::ShadowPair& pair) { return pair; }

}  // namespace

// ---- who leads ----

bool ServiceControl::leads() const {
  const MutexLock lock(mutex_);
  return leadership_.leading();
}

void ServiceControl::lead(bool leading, Time now) {
  const MutexLock lock(mutex_);
  if (leading == leadership_.leading()) return;
  leadership_.lead(leading);
  if (leading) {
    state_.judge_for_all(now);
    ledger_.add();  // written once, so that it is known to be agreed on
  } else {
    state_.judge_alone();
  }
  settle();
  saved_.notify_all();
}

uint64_t ServiceControl::saved_change() const {
  const MutexLock lock(mutex_);
  return ledger_.saved();
}

void ServiceControl::let_rise(bool allowed, uint64_t change, const std::string& waits_for) {
  const MutexLock lock(mutex_);
  leadership_.agree(allowed && change == ledger_.saved() && ledger_.all_saved(), waits_for);
  settle();
  if (leadership_.agreed()) saved_.notify_all();
}

// ---- what is seen ----

Sightings ServiceControl::take_sightings() {
  const MutexLock lock(mutex_);
  return leadership_.take_sightings();
}

bool ServiceControl::observe_of_others(const Sightings& seen, Time now) {
  bool any = false;
  const auto in_turns = [&](const auto& list) {
    for (size_t at = 0; at < list.size();) {
      const MutexLock lock(mutex_);
      for (const size_t end = std::min(at + kAtOnce, list.size()); at < end; ++at) {
        if (!leadership_.leading() || !state_.rollout) return;
        const rollout::State& state = state_.rollout->state();
        if (state.id != seen.rollout || state.epoch != seen.epoch) return;
        const rollout::Phase before = state.phase;
        if (state_.rollout->observe(told(list[at]), now)) any = changed_by_itself(before, now);
      }
    }
  };
  in_turns(seen.observations);
  in_turns(seen.pairs);
  return any;
}

// ---- verdicts ----

std::vector<store::Trip> ServiceControl::take_trips() {
  const MutexLock lock(mutex_);
  return leadership_.take_trips();
}

bool ServiceControl::trip(const store::Trip& trip, Time now) {
  const MutexLock lock(mutex_);
  if (!state_.rollout || state_.rollout->state().id != trip.rollout) return false;
  const rollout::Phase before = state_.rollout->state().phase;
  if (!state_.rollout->trip(trip.cause, trip.reason)) return false;
  changed(before, {}, "router " + trip.member, {}, now, &trip);
  return true;
}

// ---- what was agreed on ----

bool ServiceControl::adopt(const store::ServiceRecord& record, bool agreed, Time now) {
  const MutexLock lock(mutex_);
  if (leadership_.leading()) return true;
  if (!state_.knows(record) || state_.has_ended(record)) return false;
  if (state_.is_at(record) && split() == state_.target()) return agreed;
  const auto begins = state_.follow(record, now);
  if (!begins) return false;
  if (*begins) watch_.begin(now);
  spec_.publish(state_.spec);
  const Split next = agreed ? state_.target() : lower_of(split(), state_.target());
  apply(next);
  ledger_.add();  // for the copy on this router's disk
  settle();
  log::info("service '{}': follows the shared state: stable {}, {}", config_.name, state_.stable,
            state_.rollout ? fmt::format("canary {} at {} ppm", state_.rollout->state().canary, next.weight_ppm) : "no rollout");
  return agreed;
}

}  // namespace serin::router
