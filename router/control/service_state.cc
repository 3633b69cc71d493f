#include "router/control/service_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "router/control/learned.h"
#include "router/control/wall_clock.h"

namespace serin::router {
namespace {

using rollout::Phase;
using Time = rollout::Time;

constexpr uint32_t kWarmingPpm = 10'000;  // of requests copied to a version that is kept warm

rollout::Spec with_part_of_alpha(rollout::Spec spec, int tracks, int routers, bool of_all) {
  spec.guard.false_rollback /= tracks;
  if (routers > 0) spec.guard.false_rollback *= of_all ? 0.5 : 0.5 / routers;
  return spec;
}

Time begin_of(const store::RolloutRecord& record, Time now) {
  const double wall_seconds = static_cast<double>(wall_milliseconds() - record.started_wall_ms) / 1000;
  return now - std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(std::max(record.seconds, wall_seconds)));
}

/// Null: no rollout runs according to `record`.
const rollout::State* running_in(const store::ServiceRecord& record) {
  if (!record.rollout || rollout::is_over(record.rollout->report.state.phase)) return nullptr;
  return &record.rollout->report.state;
}

}  // namespace

ServiceState::ServiceState(const ServiceConfig& configured, Restored restored, int most_routers, Time now)
    : config(configured),
      routers(most_routers),
      stable(std::move(restored.stable)),
      epoch(restored.epoch),
      last(std::move(restored.rollout)),
      spec(idle_spec()),
      endpoints(configured.versions.size()) {
  auto stored = last ? stored_spec(*last) : Result<rollout::Spec>(Error{});
  if (!stored) return;
  steps = stored->steps.size();
  warm = warm_after(*stored, now);
  if (rollout::is_over(last_state().phase)) return;
  stored->gates = config.gates;
  rollout = resumed(*stored, last_state(), /*of_all=*/routers == 0, now);
  started_ = begin_of(*last, now);
  spec = std::make_shared<const rollout::Spec>(*std::move(stored));
}

std::shared_ptr<const rollout::Spec> ServiceState::idle_spec() const {
  return std::make_shared<const rollout::Spec>(rollout::Spec{.service = config.name, .stable = stable, .guard = config.guard});
}

rollout::Rollout ServiceState::resumed(const rollout::Spec& given, rollout::State state, bool of_all, Time now) const {
  auto next =
      rollout::Rollout::resume(with_part_of_alpha(given, config.tracks, routers, of_all), std::move(state), latencies.snapshot(), now);
  next.let_rise(of_all);
  return next;
}

// ---- what it is at ----

Split ServiceState::target() const {
  Split idle{.stable = version_index(config, stable), .epoch = static_cast<uint32_t>(epoch & Split::kEpochMask)};
  if (!rollout && warm) {
    idle.shadow_ppm = kWarmingPpm;
    idle.canary = version_index(config, warm->version);
  }
  if (!rollout) return idle;
  const rollout::State& state = rollout->state();
  return {std::min(state.weight_ppm, capacity_ppm()), state.shadow_ppm, idle.stable, version_index(config, state.canary),
          static_cast<uint32_t>(state.epoch & Split::kEpochMask)};
}

uint32_t ServiceState::capacity_ppm() const {
  if (!rollout || spec->capacity == rollout::Capacity::kOff) return rollout::kAll;
  const rollout::State& state = rollout->state();
  const uint32_t of_stable = version_index(config, state.stable), of_canary = version_index(config, state.canary);
  if (of_stable >= endpoints.size() || of_canary >= endpoints.size()) return rollout::kAll;
  if (spec->capacity == rollout::Capacity::kAuto && !config.versions[of_canary].source.slices) return rollout::kAll;
  const auto &known = endpoints[of_stable], &wanted = endpoints[of_canary];
  if (!known || !wanted || known->healthy == 0) return rollout::kAll;
  return static_cast<uint32_t>(std::min<uint64_t>(rollout::kAll, uint64_t{rollout::kAll} * wanted->healthy / known->healthy));
}

store::RolloutRecord ServiceState::record(Time now) const {
  store::RolloutRecord record = *last;
  if (!rollout) return record;
  record.report = rollout->report();
  record.seconds = std::chrono::duration<double>(now - started_).count();
  return record;
}

store::ServiceRecord ServiceState::service_record(Time now) const {
  store::ServiceRecord all{.service = config.name, .stable = stable, .epoch = epoch};
  if (last) all.rollout = record(now);
  return all;
}

Pace ServiceState::pace() const {
  constexpr uint64_t kEnough = 100;
  const LatencyHistogram known = latencies.snapshot();
  if (known.count() < kEnough) return {};
  const auto hedge = spec->shield.hedge;
  return {.hedge_after = hedge ? std::max(known.quantile(*hedge), known.quantile(0.5) * 3 / 2) : std::chrono::nanoseconds(0),
          .p99 = known.quantile(0.99)};
}

// ---- what a command needs ----

Status ServiceState::check_epoch(const std::optional<uint64_t>& if_match) const {
  if (!if_match || *if_match == epoch) return {};
  return Error{Code::kConflict,
               fmt::format("service '{}' is at epoch {}, not {}: another client changed it first", config.name, epoch, *if_match)};
}

Result<rollout::Rollout*> ServiceState::running(std::string_view command) {
  if (rollout) return &*rollout;
  if (!last) return Error{Code::kFailedPrecondition, fmt::format("service '{}' never had a rollout: cannot {}", config.name, command)};
  return Error{Code::kFailedPrecondition,
               fmt::format("rollout '{}' is {}: cannot {}", last_state().id, rollout::phase_name(last_state().phase), command)};
}

Result<rollout::Spec> ServiceState::prepared(rollout::Spec given) const {
  if (rollout) {
    const rollout::State& state = rollout->state();
    return Error{Code::kFailedPrecondition, fmt::format("rollout '{}' of service '{}' is {}: end it before another starts", state.id,
                                                        config.name, rollout::phase_name(state.phase))};
  }
  return completed(std::move(given));
}

Result<rollout::Spec> ServiceState::completed(rollout::Spec given) const {
  if (given.stable.empty()) given.stable = stable;
  if (given.baseline == given.stable) given.baseline.clear();
  given.gates = config.gates;
  SERIN_CHECK(check_versions(given));
  return given;
}

Status ServiceState::check_versions(const rollout::Spec& given) const {
  const auto invalid = [](std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; };
  for (const std::string& version : {given.canary, given.stable})
    if (version_index(config, version) == Split::kNoCanary) {
      std::string names;
      for (const VersionConfig& known : config.versions) names += (names.empty() ? "" : ", ") + known.name;
      return invalid(fmt::format("service '{}' has no version '{}'; it has {}", config.name, version, names));
    }
  if (config.split)
    return Error{Code::kFailedPrecondition,
                 fmt::format("service '{}' has a fixed split in router.yaml, and no rollouts: remove `split` first", config.name)};
  if (!given.baseline.empty() && config.tracks > 1)
    return invalid(fmt::format("service '{}' permits several rollouts at once, which have no baseline arm", config.name));
  if (given.canary == given.stable)
    return invalid(fmt::format("version '{}' is already stable; canary and stable must differ", given.canary));
  if (!given.baseline.empty() && version_index(config, given.baseline) == Split::kNoCanary)
    return invalid(fmt::format("service '{}' has no version '{}' for the baseline arm", config.name, given.baseline));
  const size_t index = version_index(config, given.canary);
  if (const auto& count = endpoints[index]; count && count->healthy == 0)
    return invalid(fmt::format("no endpoint of version '{}' of service '{}' is healthy (of {})", given.canary, config.name, count->all));
  if (given.steps.front().replay > 0 && !config.recording)
    return invalid(fmt::format("service '{}' records no requests to replay: router.yaml has no `recording` for it", config.name));
  SERIN_CHECK(check_outcomes(given.guard.outcomes));
  if (given.stable == stable) return {};
  return Error{Code::kFailedPrecondition,
               fmt::format("stable of service '{}' is version '{}', not '{}'", config.name, stable, given.stable)};
}

Status ServiceState::check_outcomes(const std::vector<rollout::OutcomeLimit>& limits) const {
  for (const rollout::OutcomeLimit& limit : limits) {
    const auto metric = std::ranges::find(config.outcomes, limit.metric, &MetricConfig::name);
    if (metric == config.outcomes.end()) {
      std::string names;
      for (const MetricConfig& known : config.outcomes) names += (names.empty() ? "" : ", ") + known.name;
      return invalid(fmt::format("guard.outcomes: service '{}' has no outcome '{}' in router.yaml; it has {}", config.name, limit.metric,
                                 names.empty() ? "none" : names));
    }
    if (limit.margin >= metric->most - metric->least)
      return invalid(
          fmt::format("guard.outcomes: the margin of '{}' must be below its range, {:g}", limit.metric, metric->most - metric->least));
  }
  return {};
}

Status ServiceState::check_undo() const {
  const auto refuse = [](std::string message) { return Error{Code::kFailedPrecondition, std::move(message)}; };
  if (rollout)
    return refuse(fmt::format("rollout '{}' is {}: nothing was promoted yet; abort it instead", rollout->state().id,
                              rollout::phase_name(rollout->state().phase)));
  if (!last) return refuse(fmt::format("service '{}' never had a rollout: cannot undo", config.name));
  if (last_state().phase != Phase::kSucceeded)
    return refuse(fmt::format("rollout '{}' is {}: cannot undo", last_state().id, rollout::phase_name(last_state().phase)));
  const std::string& before = last_state().stable;
  if (stable != last_state().canary)
    return refuse(fmt::format("version '{}' became stable after rollout '{}': cannot undo", stable, last_state().id));
  const size_t index = version_index(config, before);
  if (index == Split::kNoCanary) return refuse(fmt::format("version '{}', stable before, is no longer in the configuration", before));
  if (endpoints[index] && endpoints[index]->healthy == 0)
    return refuse(fmt::format("no endpoint of version '{}', stable before, is healthy", before));
  return {};
}

Result<rollout::Spec> ServiceState::last_spec() const {
  if (!last) return Error{Code::kFailedPrecondition, fmt::format("service '{}' never had a rollout: cannot retry", config.name)};
  SERIN_TRY(rollout::Spec again, stored_spec(*last));
  again.stable.clear();       // whatever is stable now
  again.sticky.salt.clear();  // other users first
  return again;
}

// ---- what happens to it ----

void ServiceState::begin(rollout::Spec given, Time now) {
  ++epoch;
  last = store::RolloutRecord{.spec = rollout::print_spec(given), .started_wall_ms = wall_milliseconds()};
  started_ = now;
  warm.reset();
  steps = given.steps.size();
  rollout = rollout::Rollout::start(with_part_of_alpha(given, config.tracks, routers, /*of_all=*/true),
                                    fmt::format("{}-{}", config.name, epoch), epoch, latencies.snapshot(), now);
  if (routers > 0) own = resumed(given, rollout->state(), /*of_all=*/false, now);
  spec = std::make_shared<const rollout::Spec>(std::move(given));
}

void ServiceState::raise_epoch() { epoch = std::max(epoch + 1, rollout->state().epoch); }

rollout::VerdictRecord ServiceState::finish(Time now) {
  last = record(now);
  rollout::VerdictRecord why = own && rollout::is_over(own->state().phase) ? own->explain() : rollout->explain();
  rollout.reset();
  own.reset();
  if (last_state().phase == Phase::kSucceeded) {
    stable = last_state().canary;
    latencies.clear();  // they were another version's
    warm = warm_for(spec->keep_warm, now);
  }
  epoch = std::max(epoch, last_state().epoch) + 1;
  spec = idle_spec();
  return why;
}

void ServiceState::undo(const std::string& reason) {
  rollout::State& state = last->report.state;
  state.phase = Phase::kRolledBack;
  state.weight_ppm = 0;
  state.cause = "undo";
  state.reason = reason.empty() ? fmt::format("undone manually: version {} gets all traffic again", state.stable) : reason;
  stable = state.stable;
  warm.reset();
  latencies.clear();
  ++epoch;
  spec = idle_spec();
}

std::optional<ServiceState::Warm> ServiceState::warm_after(const rollout::Spec& promoted, Time now) const {
  if (last_state().phase != Phase::kSucceeded || last_state().canary != stable || config.split) return std::nullopt;
  const auto age = std::chrono::milliseconds(wall_milliseconds() - last->started_wall_ms - std::llround(last->seconds * 1000));
  return warm_for(promoted.keep_warm - std::max<std::chrono::nanoseconds>(age, std::chrono::nanoseconds(0)), now);
}

std::optional<ServiceState::Warm> ServiceState::warm_for(std::chrono::nanoseconds time, Time now) const {
  const std::string& before = last_state().stable;
  if (time.count() <= 0 || version_index(config, before) == Split::kNoCanary) return std::nullopt;
  return Warm{before, now + std::chrono::duration_cast<Time::duration>(time)};
}

/// Nothing to be saved: the specification and the time of the verdict say until when.
void ServiceState::cool_down(Time now) {
  if (warm && now >= warm->until) warm.reset();
}

// ---- with other rollouts ----

void ServiceState::follow_stable(const std::string& version) {
  stable = version;
  latencies.clear();
  warm.reset();
  ++epoch;
  spec = idle_spec();
}

// ---- with other routers ----

void ServiceState::judge_for_all(Time now) {
  if (rollout) own = std::exchange(rollout, resumed(*spec, rollout->state(), /*of_all=*/true, now));
}

void ServiceState::judge_alone() {
  if (!own) return;
  own->follow(rollout->state());
  rollout = std::exchange(own, std::nullopt);
}

bool ServiceState::knows(const store::ServiceRecord& record) const {
  if (version_index(config, record.stable) == Split::kNoCanary) return false;
  const rollout::State* theirs = running_in(record);
  return theirs == nullptr || version_index(config, theirs->canary) != Split::kNoCanary;
}

bool ServiceState::has_ended(const store::ServiceRecord& record) const {
  const rollout::State* theirs = running_in(record);
  return theirs != nullptr && !rollout && last && last_state().phase == Phase::kRolledBack && last_state().id == theirs->id;
}

bool ServiceState::is_at(const store::ServiceRecord& record) const {
  if (stable != record.stable || epoch != record.epoch) return false;
  if (const rollout::State* theirs = running_in(record)) return rollout && same(rollout->state(), *theirs);
  return !rollout && last.has_value() == record.rollout.has_value() && (!last || same(last_state(), record.rollout->report.state));
}

Result<bool> ServiceState::follow(const store::ServiceRecord& record, Time now) {
  const rollout::State* theirs = running_in(record);
  const bool begins = theirs != nullptr && !(rollout && rollout->state().id == theirs->id);
  rollout::Spec next{.service = config.name, .stable = record.stable, .guard = config.guard};
  if (theirs != nullptr) {
    SERIN_TRY(next, stored_spec(*record.rollout));
    next.gates = config.gates;
    steps = next.steps.size();
    started_ = begin_of(*record.rollout, now);
  }
  if (stable != record.stable) latencies.clear();
  stable = record.stable;
  epoch = record.epoch;
  warm.reset();
  if (begins)
    rollout = resumed(next, *theirs, /*of_all=*/false, now);
  else if (theirs != nullptr)
    rollout->follow(*theirs);
  else
    rollout.reset();
  if (theirs == nullptr && record.rollout && !(last && same(last_state(), record.rollout->report.state))) verdict.clear();
  last = record.rollout;
  spec = std::make_shared<const rollout::Spec>(std::move(next));
  warm_elsewhere.reset();
  if (const auto promoted = last && theirs == nullptr ? stored_spec(*last) : Result<rollout::Spec>(Error{}))
    warm_elsewhere = warm_after(*promoted, now);
  return begins;
}

}  // namespace serin::router
