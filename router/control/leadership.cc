#include "router/control/leadership.h"

#include <fmt/format.h>

namespace serin::router {
namespace {

constexpr size_t kMostSightings = 20'000;  // of one service, while the leader cannot be reached

}  // namespace

Status Leadership::check_leads() const {
  if (leading_) return {};
  return Error{Code::kUnavailable, "this router does not lead the others; until one leads, rollouts can only be aborted"};
}

Status Leadership::check_agreed() const {
  SERIN_CHECK(check_leads());
  if (agreed_) return {};
  return Error{Code::kUnavailable, fmt::format("not all routers follow the last change yet: {}", waits_for_)};
}

void Leadership::lead(bool leading) {
  leading_ = leading;
  agreed_ = false;
  sightings_ = {};
}

void Leadership::agree(bool agreed, std::string waits_for) {
  agreed_ = agreed && leading_;
  waits_for_ = std::move(waits_for);
}

void Leadership::tell(const rollout::State& state, const std::string& verdict) {
  if (alone_ || state.phase != rollout::Phase::kRolledBack) return;
  // This router's own affair; one that is over everywhere; what the leader's state says.
  if (state.cause == "configuration" || state.cause == "undo" || state.cause == "superseded") return;
  trips_.push_back({.service = service_, .rollout = state.id, .cause = state.cause, .reason = state.reason, .verdict = verdict});
}

bool Leadership::has_room(const rollout::State& at) {
  if (sightings_.epoch != at.epoch || sightings_.rollout != at.id) sightings_ = {.service = service_, .rollout = at.id, .epoch = at.epoch};
  if (sightings_.observations.size() + sightings_.pairs.size() < kMostSightings) return true;
  ++sightings_.dropped;  // whatever it says: dropping is no judgement
  return false;
}

void Leadership::note(const rollout::State& at, const rollout::Observation& observation) {
  if (has_room(at)) sightings_.observations.push_back(observation);
}

void Leadership::note(const rollout::State& at, const rollout::ShadowPair& pair) {
  if (has_room(at)) sightings_.pairs.push_back(pair);
}

Sightings Leadership::take_sightings() {
  if (sightings_.empty()) return {};
  return std::exchange(sightings_, {.service = sightings_.service, .rollout = sightings_.rollout, .epoch = sightings_.epoch});
}

}  // namespace serin::router
