// service_replicas.cc: a service that several routers share. See service_control.h for who judges what.
//
// Alpha is divided once and for all, by how many routers there may be (R) and not by how many live: half for what the leader sees of all, 1/(2R)
// for each router alone. By the union bound the chance that any of these R+1 judges rolls a healthy canary back stays below alpha, for each
// tenure of a leader; a new one begins its evidence anew, as a router does after a restart.

#include <fmt/format.h>

#include <algorithm>

#include "router/config/split.h"
#include "router/control/service_control.h"
#include "runtime/base/log.h"

namespace serin::router {

using rollout::Phase;

namespace {

constexpr size_t kMostSightings = 20'000;  // of one service, while the leader cannot be reached
constexpr size_t kAtOnce = 64;             // then the data path has its turn

rollout::Spec with_part_of_alpha(rollout::Spec spec, int routers, bool of_all) {
  if (routers > 0) spec.guard.false_rollback *= of_all ? 0.5 : 0.5 / routers;
  return spec;
}

}  // namespace

rollout::Rollout ServiceControl::resumed(const rollout::Spec& spec, rollout::State state, bool of_all, Time now) const {
  auto rollout = rollout::Rollout::resume(with_part_of_alpha(spec, routers_, of_all), std::move(state), latencies_.snapshot(), now);
  rollout.let_rise(of_all);
  return rollout;
}

rollout::Rollout ServiceControl::begun(const rollout::Spec& spec, Time now) const {
  return rollout::Rollout::start(with_part_of_alpha(spec, routers_, /*of_all=*/true), fmt::format("{}-{}", config_.name, epoch_), epoch_,
                                 latencies_.snapshot(), now);
}

/// Steps advance while the weight that they want is in force, here and at every other router, and not before.
void ServiceControl::settle() {
  if (rollout_) rollout_->let_rise(may_rise());
}

bool ServiceControl::leads() const {
  const std::lock_guard lock(mutex_);
  return leading_;
}

void ServiceControl::lead(bool leading, Time now) {
  const std::lock_guard lock(mutex_);
  if (leading == leading_) return;
  leading_ = leading;
  agreed_ = false;
  sightings_ = {};
  if (leading) {
    if (rollout_) own_ = std::exchange(rollout_, resumed(*spec_.get(), rollout_->state(), /*of_all=*/true, now));
    ++change_;  // written once, so that it is known to be agreed on
  } else if (own_) {
    own_->follow(rollout_->state());
    rollout_ = std::exchange(own_, std::nullopt);
  }
  settle();
  saved_.notify_all();
}

uint64_t ServiceControl::saved_change() const {
  const std::lock_guard lock(mutex_);
  return saved_change_;
}

void ServiceControl::let_rise(bool allowed, uint64_t change, const std::string& waits_for) {
  const std::lock_guard lock(mutex_);
  agreed_ = allowed && leading_ && change == saved_change_ && saved_change_ == change_;
  waits_for_ = waits_for;
  settle();
  if (agreed_) saved_.notify_all();
}

Status ServiceControl::wait_until_agreed(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  if (saved_.wait_for(lock, longest, [&] { return agreed_ || !leading_; })) return {};
  return check_store();
}

// ---- what is seen ----

/// False: there is no room.
bool ServiceControl::begin_sightings() {
  const rollout::State& state = rollout_->state();
  if (sightings_.epoch != state.epoch || sightings_.rollout != state.id)
    sightings_ = {.service = config_.name, .rollout = state.id, .epoch = state.epoch};
  if (sightings_.observations.size() + sightings_.pairs.size() < kMostSightings) return true;
  ++sightings_.dropped;  // whatever it says: dropping is no judgement
  return false;
}

void ServiceControl::note(const rollout::Observation& observation) {
  if (begin_sightings()) sightings_.observations.push_back(observation);
}

void ServiceControl::note(const rollout::ShadowPair& pair) {
  if (begin_sightings()) sightings_.pairs.push_back(pair);
}

Sightings ServiceControl::take_sightings() {
  const std::lock_guard lock(mutex_);
  if (sightings_.empty()) return {};
  Sightings taken = std::exchange(sightings_, {.service = sightings_.service, .rollout = sightings_.rollout, .epoch = sightings_.epoch});
  return taken;
}

bool ServiceControl::observe_of_others(const Sightings& seen, Time now) {
  bool any = false;
  const auto in_turns = [&](const auto& list) {
    for (size_t at = 0; at < list.size();) {
      const std::lock_guard lock(mutex_);
      for (const size_t end = std::min(at + kAtOnce, list.size()); at < end; ++at) {
        if (!leading_ || !rollout_ || rollout_->state().id != seen.rollout || rollout_->state().epoch != seen.epoch) return;
        const Phase before = rollout_->state().phase;
        if (!rollout_->observe(list[at], now)) continue;
        changed(before, {}, "router", {}, now);
        any = true;
      }
    }
  };
  in_turns(seen.observations);
  in_turns(seen.pairs);
  return any;
}

// ---- verdicts ----

/// Nobody else has to agree: what this router alone has seen is enough.
bool ServiceControl::verdict_of_own(Phase before, Time now) {
  const rollout::State own = own_->state();
  rollout_->trip(own.cause, own.reason);
  changed(before, {}, "router", {}, now);
  return true;
}

void ServiceControl::remember_trip() {
  if (routers_ == 0 || !last_ || last_->report.state.phase != Phase::kRolledBack) return;
  const rollout::State& state = last_->report.state;
  if (state.cause == "configuration" || state.cause == "undo") return;  // this router's own affair; one that is over everywhere
  trips_.push_back({.service = config_.name, .rollout = state.id, .cause = state.cause, .reason = state.reason, .verdict = verdict_});
}

std::vector<store::Trip> ServiceControl::take_trips() {
  const std::lock_guard lock(mutex_);
  return std::exchange(trips_, {});
}

bool ServiceControl::trip(const store::Trip& trip, Time now) {
  const std::lock_guard lock(mutex_);
  if (!rollout_ || rollout_->state().id != trip.rollout) return false;
  const Phase before = rollout_->state().phase;
  if (!rollout_->trip(trip.cause, trip.reason)) return false;
  told_ = true;
  told_verdict_ = trip.verdict;
  changed(before, {}, "router " + trip.member, {}, now);
  told_ = false;
  return true;
}

// ---- what was agreed on ----

bool ServiceControl::knows(const store::ServiceRecord& record) const {
  if (version_index(config_, record.stable) == Split::kNoCanary) return false;
  if (!record.rollout || rollout::is_over(record.rollout->report.state.phase)) return true;
  return version_index(config_, record.rollout->report.state.canary) != Split::kNoCanary;
}

bool ServiceControl::adopt(const store::ServiceRecord& record, bool agreed, Time now) {
  const std::lock_guard lock(mutex_);
  if (leading_) return true;
  if (!knows(record)) return false;
  const rollout::State* theirs = record.rollout ? &record.rollout->report.state : nullptr;
  const bool runs = theirs != nullptr && !rollout::is_over(theirs->phase);
  // A verdict that was come to here stands until the leader has taken it up.
  const bool tripped = !rollout_ && last_ && last_->report.state.phase == Phase::kRolledBack;
  if (runs && tripped && last_->report.state.id == theirs->id) return false;

  const bool same_rollout = runs && rollout_ && rollout_->state().id == theirs->id;
  const bool nothing_new =
      runs ? same_rollout && same(rollout_->state(), *theirs)
           : !rollout_ && last_.has_value() == record.rollout.has_value() && (!theirs || same(last_->report.state, *theirs));
  if (nothing_new && stable_ == record.stable && epoch_ == record.epoch && split() == target()) return agreed;

  rollout::Spec spec{.service = config_.name, .stable = record.stable, .guard = config_.guard};
  if (runs) {
    auto stored = stored_spec(*record.rollout);
    if (!stored) return false;
    spec = *std::move(stored);
    spec.gates = config_.gates;
    steps_ = spec.steps.size();
    started_ = begin_of(*record.rollout, now);
  }
  if (stable_ != record.stable) latencies_.clear();
  stable_ = record.stable;
  epoch_ = record.epoch;
  warm_.reset();  // the leader keeps it warm
  if (runs && !same_rollout) {
    rollout_ = resumed(spec, *theirs, /*of_all=*/false, now);
    service_metrics_.forget();
    timeline_.clear(now);
    pace_.clear();
  } else if (runs) {
    rollout_->follow(*theirs);
  } else {
    rollout_.reset();
  }
  if (!runs && theirs != nullptr && !(last_ && same(last_->report.state, *theirs))) verdict_.clear();
  last_ = record.rollout;
  spec_.publish(std::make_shared<const rollout::Spec>(std::move(spec)));
  Split next = target();
  if (!agreed) {
    const Split applied = split();
    const bool same_canary = applied.canary == next.canary && applied.stable == next.stable;
    next.weight_ppm = same_canary ? std::min(applied.weight_ppm, next.weight_ppm) : 0;
    next.shadow_ppm = same_canary ? std::min(applied.shadow_ppm, next.shadow_ppm) : 0;
  }
  apply(next);
  ++change_;  // for the copy on this router's disk
  settle();
  log::info("service '{}': follows the shared state: stable {}, {}", config_.name, stable_,
            runs ? fmt::format("canary {} at {} ppm", theirs->canary, next.weight_ppm) : "no rollout");
  return agreed;
}

}  // namespace serin::router
