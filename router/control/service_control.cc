// service_control.cc: see the header for the one rule; the rest is bookkeeping around it.

#include "router/control/service_control.h"

#include <fmt/format.h>

#include <algorithm>

#include "router/control/wall_clock.h"
#include "router/rollout/draw.h"
#include "router/store/verdict_json.h"
#include "runtime/base/log.h"

namespace serin::router {
namespace {

using rollout::Phase;

/// The audit log's word for what the rollout did by itself.
std::string_view event_of(Phase before, Phase after, std::string_view cause) {
  if (before == after) return "weight";
  switch (after) {
    case Phase::kProgressing: return "resumed";
    case Phase::kPaused: return cause.starts_with("confirm-") ? "waiting" : "paused";
    case Phase::kInconclusive: return "inconclusive";
    case Phase::kPromoting: return "promoting";
    case Phase::kBaking: return "baking";
    case Phase::kSucceeded: return "promoted";
    case Phase::kRolledBack: return "rolled_back";
  }
  return "weight";
}

std::string detail_of(const rollout::State& state, const std::string& given_reason) {
  const bool names_cause = !rollout::is_over(state.phase) || state.reason.starts_with(state.cause);
  const std::string detail = names_cause ? state.reason : fmt::format("{}: {}", state.cause, state.reason);
  return given_reason.empty() || given_reason == state.reason ? detail : fmt::format("{} ({})", detail, given_reason);
}

}  // namespace

Split split_of(const ServiceConfig& config, const Restored& restored) {
  Split split{.stable = version_index(config, restored.stable), .epoch = static_cast<uint32_t>(restored.epoch & Split::kEpochMask)};
  if (!restored.rollout || rollout::is_over(restored.rollout->report.state.phase)) return split;
  const rollout::State& state = restored.rollout->report.state;
  return {state.weight_ppm, state.shadow_ppm, split.stable, version_index(config, state.canary),
          static_cast<uint32_t>(state.epoch & Split::kEpochMask)};
}

Split without_rises(const Split& applied, const Split& target) {
  if (applied.stable != target.stable) return applied;
  if (target.canary == Split::kNoCanary) return target;
  if (applied.canary != target.canary) return applied;
  Split split = target;
  split.weight_ppm = std::min(applied.weight_ppm, target.weight_ppm);
  split.shadow_ppm = std::min(applied.shadow_ppm, target.shadow_ppm);
  return split;
}

ServiceControl::ServiceControl(const ServiceConfig& config, Restored restored, store::WeightsPage& page, size_t slot,
                               metrics::Registry& metrics, Time now, int routers)
    : config_(config),
      page_(page),
      slot_(slot),
      word_(page.word(slot)),
      state_(config, std::move(restored), routers, now),
      page_epoch_(state_.epoch),
      leadership_(config.name, routers),
      watch_(metrics, config.name, now) {
  spec_.publish(state_.spec);
  routed_ = !config.http_route;
  if (state_.last) leadership_.tell(state_.last_state(), state_.verdict);  // it may have been killed before anybody else heard of it
  settle();
  for (size_t i = 0; config.track_of.empty() && i < config.versions.size(); ++i) {
    gauges_.push_back(metrics.gauge_callback("serin_route_weight_ppm", "Share of requests that a version gets, in parts per million.",
                                             {{"service", config.name}, {"version", config.versions[i].name}},
                                             [this, i] { return static_cast<double>(share_of(i)); }));
  }
}

uint32_t ServiceControl::share_of(size_t version) const {
  if (config_.split) return config_.split->ppm[version];
  if (!tracks_.empty()) return share_among_tracks(version);
  const Split now = split();
  if (version == now.canary) return now.weight_ppm;
  const auto asked = spec_.get();
  const uint32_t baseline = now.canary == Split::kNoCanary ? 0 : baseline_weight(*asked, now.weight_ppm);
  if (version == now.stable) return rollout::kAll - now.weight_ppm - baseline;
  return baseline > 0 && config_.versions[version].name == asked->baseline ? baseline : 0;
}

std::string ServiceControl::warm_elsewhere(Time now) const {
  const MutexLock lock(mutex_);
  return state_.warm_elsewhere && now < state_.warm_elsewhere->until ? state_.warm_elsewhere->version : "";
}

// ---- what answers and time do ----

bool ServiceControl::observe(rollout::Observation observation, Time now) {
  const MutexLock lock(mutex_);
  const uint64_t epoch = state_.answers_epoch();
  if ((observation.epoch & Split::kEpochMask) != (epoch & Split::kEpochMask)) return false;
  observation.epoch = epoch;
  if (observation.arm == rollout::Arm::kStable && observation.outcome == rollout::Outcome::kOk)
    state_.latencies.record(observation.latency);
  if (!observation.sign) watch_.count(observation);
  return state_.rollout && judge(observation, now);
}

bool ServiceControl::observe(rollout::ShadowPair pair, Time now) {
  const MutexLock lock(mutex_);
  if (!state_.rollout || (pair.epoch & Split::kEpochMask) != (state_.answers_epoch() & Split::kEpochMask)) return false;
  pair.epoch = state_.answers_epoch();
  watch_.count(pair);
  return judge(pair, now);
}

/// Two judges, if this router leads others: what it alone has seen is enough for a verdict, and nobody else has to agree.
template <class Seen>
bool ServiceControl::judge(const Seen& seen, Time now) {
  if (!leadership_.leading()) leadership_.note(state_.rollout->state(), seen);
  const Phase before = state_.rollout->state().phase;
  if (state_.own && state_.own->observe(seen, now)) {
    const rollout::State own = state_.own->state();
    state_.rollout->trip(own.cause, own.reason);
    return changed_by_itself(before, now);
  }
  return state_.rollout->observe(seen, now) && changed_by_itself(before, now);
}

bool ServiceControl::observe(rollout::ResourceRound round, Time now) {
  const MutexLock lock(mutex_);
  if (!state_.rollout || (round.epoch & Split::kEpochMask) != (state_.answers_epoch() & Split::kEpochMask)) return false;
  round.epoch = state_.answers_epoch();
  if (!tracks_.empty()) round.weight_ppm = own_weight();  // more requests than before may take more memory
  const Phase before = state_.rollout->state().phase;
  return state_.rollout->observe(round, now) && changed_by_itself(before, now);
}

bool ServiceControl::observe_sample(const std::string& id, size_t guard, std::optional<double> value, Time now) {
  const MutexLock lock(mutex_);
  if (!state_.rollout || state_.rollout->state().id != id) return false;
  const Phase before = state_.rollout->state().phase;
  return state_.rollout->observe_sample(guard, value, now) && changed_by_itself(before, now);
}

bool ServiceControl::observe_outcomes(const std::string& id, size_t guard, const rollout::OutcomeEvidence& evidence, Time now) {
  const MutexLock lock(mutex_);
  if (!state_.rollout || state_.rollout->state().id != id) return false;
  const Phase before = state_.rollout->state().phase;
  return state_.rollout->observe_outcomes(guard, evidence, now) && changed_by_itself(before, now);
}

bool ServiceControl::tick(Time now) {
  const MutexLock lock(mutex_);
  if (watch_.is_due(now)) {
    const Pace pace = state_.pace();
    p99_ = pace.p99;
    hedge_after_ = pace.hedge_after;
    watch_.look(state_, split(), now);
  }
  if (!state_.rollout) {
    state_.cool_down(now);
    if (leadership_.leading() && ledger_.all_saved()) apply(state_.target());
    return false;
  }
  if (!leadership_.leading()) return false;
  const Phase before = state_.rollout->state().phase;
  return state_.rollout->tick(now) && changed_by_itself(before, now);
}

// ---- what every change does ----

bool ServiceControl::changed_by_itself(Phase before, Time now) {
  changed(before, {}, "router", {}, now);
  return true;
}

ServiceControl::Done ServiceControl::unchanged() const { return {.change = ledger_.latest(), .applied = split() == state_.target()}; }

/// `event` empty: the rollout's own. `told`: another router reached the verdict.
ServiceControl::Done ServiceControl::changed(Phase before, std::string_view event, std::string actor, const std::string& given_reason,
                                             Time now, const store::Trip* told) {
  const rollout::State after = state_.rollout->state();
  if (rollout::is_over(after.phase)) {
    const rollout::VerdictRecord why = state_.finish(now);
    if (after.phase == Phase::kSucceeded && told == nullptr) promotion_ = state_.stable;
    leadership_.forget_sightings();
    spec_.publish(state_.spec);
    conclude(why, told);
    if (told == nullptr) leadership_.tell(state_.last_state(), state_.verdict);
  }
  return written_down(after, event.empty() ? event_of(before, after.phase, after.cause) : event, std::move(actor), given_reason);
}

ServiceControl::Done ServiceControl::written_down(const rollout::State& after, std::string_view event, std::string actor,
                                                  const std::string& given_reason) {
  apply(without_rises(split(), state_.target()));
  if (state_.own) state_.own->follow(after);
  settle();
  store::HistoryEntry entry{.wall_ms = wall_milliseconds(),
                            .service = config_.name,
                            .rollout = after.id,
                            .event = std::string(event),
                            .actor = std::move(actor),
                            .detail = detail_of(after, given_reason),
                            .weight_ppm = after.weight_ppm};
  log::info("service '{}': {} by {}: {}", config_.name, entry.event, entry.actor, entry.detail);
  ledger_.note(std::move(entry));
  return {.change = ledger_.add(), .applied = split() == state_.target()};
}

/// Counts the verdict on the last rollout and keeps why.
void ServiceControl::conclude(const rollout::VerdictRecord& why, const store::Trip* told) {
  const rollout::State& state = state_.last_state();
  const bool explained = told != nullptr && !told->verdict.empty();
  state_.verdict = explained ? told->verdict : store::verdict_json(*state_.last, why, wall_milliseconds());
  ledger_.note(store::VerdictEntry{.id = state.id, .wall_ms = wall_milliseconds(), .json = state_.verdict});
  watch_.count_verdict(state);
}

/// Steps advance while the weight that they want is in force, here and at every other router, and not before.
void ServiceControl::settle() {
  if (!state_.rollout) return;
  state_.rollout->let_rise(may_rise());
  state_.rollout->let_promote(may_promote_);
  capacity_ = state_.capacity_ppm();
  state_.rollout->set_capacity(capacity_);
}

/// The epoch goes to the page with whatever raises it, before anybody can see it: one that was seen is never given out again (restore.cc).
void ServiceControl::apply(const Split& split_now) {
  const bool same_word = split_now == split();
  if (same_word && page_epoch_ == state_.epoch) return;
  const bool verdict = !state_.rollout && state_.last;
  if (!same_word && config_.http_route) routed_ = false;
  if (!same_word) watch_.look_soon();  // a weight that stood for less than a second is part of the way, too
  page_epoch_ = state_.epoch;
  page_.store(slot_, split_now.pack(), page_epoch_, verdict ? state_.last_state().cause : "", verdict ? state_.last_state().reason : "");
}

void ServiceControl::let_advance(bool allowed, const Split& shares, const std::string& waits_for) {
  const MutexLock lock(mutex_);
  routed_ = allowed && shares == split();
  route_waits_for_ = waits_for;
  settle();
}

// ---- to disk: what is unsaved is copied under the lock and written without it; only what was written raises a weight, and only where nothing newer
// waits ----

Result<bool> ServiceControl::save(store::Store& store, Time now) {
  bool wrote = false;
  while (const auto batch = unsaved(now)) {
    const Status status = store.save(batch->what);
    const MutexLock lock(mutex_);
    if (!status) {
      ledger_.failed(*batch, status.error());
      saved_.notify_all();
      return status.error();
    }
    ledger_.written(*batch);
    if (batch->what.shared) leadership_.wrote_shared();
    if (ledger_.all_saved() && batch->what.shared) apply(state_.target());  // else something newer must be written first
    settle();
    saved_.notify_all();
    wrote = true;
  }
  return wrote;
}

std::optional<Ledger::Batch> ServiceControl::unsaved(Time now) const {
  const MutexLock lock(mutex_);
  if (ledger_.all_saved()) return std::nullopt;
  return ledger_.batch(state_.service_record(now), leadership_.leading());
}

Status ServiceControl::wait_until_saved(uint64_t change) {
  const MutexLock lock(mutex_);
  saved_.wait(mutex_, [&]() SERIN_REQUIRES(mutex_) { return ledger_.tried(change); });
  return ledger_.outcome(change);
}

// ---- what it is at ----

ServiceStatus ServiceControl::status(Time now) const {
  const MutexLock lock(mutex_);
  ServiceStatus status = watch_.status(state_, now);
  if (state_.rollout && !tracks_.empty()) show_fitted(*status.rollout);
  if (state_.rollout) status.rollout->state.weight_ppm = std::min(status.rollout->state.weight_ppm, state_.capacity_ppm());
  if (status.rollout && !route_waits_for_.empty()) status.rollout->note = route_waits_for_;
  return status;
}

std::pair<std::string, std::shared_ptr<const rollout::Spec>> ServiceControl::running_spec() const {
  const MutexLock lock(mutex_);
  if (!state_.rollout) return {};
  return {state_.rollout->state().id, state_.spec};
}

std::optional<rollout::State> ServiceControl::running_state() const {
  const MutexLock lock(mutex_);
  return state_.rollout && leadership_.leading() ? std::optional(state_.rollout->state()) : std::nullopt;
}

Result<rollout::Spec> ServiceControl::last_spec() const {
  const MutexLock lock(mutex_);
  return state_.last_spec();
}

std::optional<std::string> ServiceControl::explain(const std::string& id, Time now) const {
  const MutexLock lock(mutex_);
  if (!state_.last) return std::nullopt;
  const store::RolloutRecord current = state_.record(now);
  if (id != config_.name && id != current.report.state.id) return std::nullopt;
  if (state_.rollout) return store::verdict_json(current, state_.rollout->explain(), wall_milliseconds());
  return state_.verdict.empty() ? std::nullopt : std::optional(state_.verdict);
}

std::optional<std::string> ServiceControl::outcome(const std::string& id) const {
  const MutexLock lock(mutex_);
  if (!state_.last || state_.last_state().id != id) return std::nullopt;
  return store::verdict_json(*state_.last, {}, 0);
}

Timeline ServiceControl::timeline() const {
  const MutexLock lock(mutex_);
  return watch_.timeline();
}

void ServiceControl::set_endpoint_count(size_t version, EndpointCount count) {
  const MutexLock lock(mutex_);
  if (version >= state_.endpoints.size()) return;
  state_.endpoints[version] = count;
  if (!state_.rollout || state_.capacity_ppm() == capacity_) return;
  settle();
  const Split target = state_.target();
  // A weight that is written down may return to its full value; followers take it from the leader's state (adopt()).
  const bool may_return = leadership_.leading() && ledger_.all_saved();
  apply(may_return ? target : without_rises(split(), target));
  settle();
}

std::optional<EndpointCount> ServiceControl::endpoint_count(size_t version) const {
  const MutexLock lock(mutex_);
  return version < state_.endpoints.size() ? state_.endpoints[version] : std::nullopt;
}

void ServiceControl::update_metrics() {
  const MutexLock lock(mutex_);
  watch_.show_metrics(state_);
}

// ---- one reading of router.yaml after the other ----

Learned ServiceControl::take_learned() {
  const MutexLock lock(mutex_);
  return {.config = config_,
          .routers = state_.routers,
          .stable = state_.stable,
          .latencies = state_.latencies,
          .recent = watch_.recent(),
          .rollout = std::exchange(state_.own ? state_.own : state_.rollout, std::nullopt),
          .timeline = watch_.timeline()};
}

void ServiceControl::remember(Learned learned) {
  const MutexLock lock(mutex_);
  if (learned.stable == state_.stable && same_version(learned.config, config_, state_.stable)) state_.latencies = learned.latencies;
  if (!state_.rollout || !goes_on(learned, config_, state_.rollout->state(), state_.routers)) return;
  state_.rollout = std::move(learned.rollout);
  state_.rollout->set_gates(config_.gates);
  watch_.go_on(learned.recent, std::move(learned.timeline));
  settle();
}

}  // namespace serin::router
