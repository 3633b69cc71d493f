// restore.cc: one question after the other, the safest answer each time.
//
//   stable      of a further track: the service's; else the database's; where it was lost, the page's; else the configuration's initial one
//   rollout     goes on, unless a version of it is gone or the page knows of a verdict: then it is rolled back
//   weight      the smaller one of database and page; what the page does not know is 0, and then a person must resume
//   epoch       the database's; where the page is ahead, the one after the page's
//   step        where a rise was written but not applied: the one whose weight is applied. Its certificate is asked for again.

#include "router/control/restore.h"

#include <fmt/format.h>

#include <algorithm>

#include "router/config/split.h"
#include "router/store/digest.h"

namespace serin::router {
namespace {

using rollout::Phase;

bool knows(const ServiceConfig& config, const std::string& version) {
  return std::ranges::find(config.versions, version, &VersionConfig::name) != config.versions.end();
}

/// Whether the index, written under an earlier configuration, meant this version.
bool means(const store::WeightsPage::Found& page, uint32_t index, const std::string& version) {
  return index < page.versions.size() && page.versions[index] == store::digest(version);
}

std::string stable_of(const ServiceConfig& config, const std::optional<store::WeightsPage::Found>& page) {
  if (!page) return config.initial_stable;
  const uint32_t index = Split::unpack(page->word).stable;
  const auto found = std::ranges::find_if(config.versions, [&](const VersionConfig& version) { return means(*page, index, version.name); });
  return found == config.versions.end() ? config.initial_stable : found->name;
}

void roll_back(Restored& restored, std::string cause, std::string reason) {
  rollout::State& state = restored.rollout->report.state;
  state.phase = Phase::kRolledBack;
  state.weight_ppm = 0;
  state.shadow_ppm = 0;
  state.cause = std::move(cause);
  state.reason = std::move(reason);
  restored.epoch += 1;
  restored.events.push_back({"rolled_back", fmt::format("{}: {}", state.cause, state.reason)});
}

/// The service has another stable version than this track knew when it was written last.
void end_for_stable(Restored& restored) {
  if (!restored.rollout || rollout::is_over(restored.rollout->report.state.phase)) return;
  rollout::State& state = restored.rollout->report.state;
  const bool promotes = state.phase == Phase::kPromoting || state.phase == Phase::kBaking;
  if (state.canary != restored.stable || !promotes)
    return roll_back(restored, "superseded", fmt::format("version '{}' is stable now", restored.stable));
  state.phase = Phase::kSucceeded;  // it was promoted, and the router stopped before this was written
  state.cause = "promoted";
  state.reason = "promoted just before the router stopped";
  restored.events.push_back({"promoted", state.reason});
}

void pause_at_zero(Restored& restored, std::string_view why) {
  rollout::State& state = restored.rollout->report.state;
  state.phase = Phase::kPaused;
  state.weight_ppm = 0;
  state.shadow_ppm = 0;
  state.reason = fmt::format("paused by the restart: {}; resume to continue", why);
  restored.events.push_back({"paused", state.reason});
}

/// The word was stored after the rollout had begun: epochs in a word are cut to 12 bits, so the shorter way round counts.
bool is_after(uint32_t word_epoch, uint64_t rollout_epoch) {
  const uint32_t ahead = (word_epoch - static_cast<uint32_t>(rollout_epoch)) & Split::kEpochMask;
  return ahead > 0 && ahead < (Split::kEpochMask + 1) / 2;
}

/// Back to the last step that the applied weight stands for.
void take_back_rise(Restored& restored, const rollout::Spec& spec, const Split& applied) {
  rollout::State& state = restored.rollout->report.state;
  if (applied.weight_ppm == 0 && applied.shadow_ppm == 0) return pause_at_zero(restored, "the weight in force was 0");
  state.weight_ppm = std::min(state.weight_ppm, applied.weight_ppm);
  state.shadow_ppm = std::min(state.shadow_ppm, applied.shadow_ppm);
  if (state.phase == Phase::kPaused) {  // set by hand: the smaller weight stands until somebody resumes
    restored.events.push_back({"weight", "the smaller weight applies: the router stopped before the new one was applied"});
    return;
  }
  int step = 0;
  for (int i = 0; i < static_cast<int>(spec.steps.size()); ++i) {
    const rollout::Step& candidate = spec.steps[static_cast<size_t>(i)];
    if (!candidate.is_pause() && candidate.weight_ppm <= applied.weight_ppm && (candidate.weight_ppm > 0 || applied.weight_ppm == 0))
      step = i;
  }
  state.phase = Phase::kProgressing;
  state.step = step;
  state.cause.clear();
  state.shadow_ppm = applied.weight_ppm == 0 ? applied.shadow_ppm : state.shadow_ppm;
  state.reason = fmt::format("step {} of {} again: the router stopped before the next weight was applied", step + 1, spec.steps.size());
  restored.events.push_back({"weight", state.reason});
}

void continue_rollout(Restored& restored, const ServiceConfig& config, const std::optional<store::WeightsPage::Found>& page) {
  const rollout::State& state = restored.rollout->report.state;
  if (config.split) return roll_back(restored, "configuration", "router.yaml divides the requests by a fixed split");
  if (!knows(config, state.canary))
    return roll_back(restored, "configuration", fmt::format("canary version '{}' is not in the configuration", state.canary));
  if (state.stable != restored.stable)
    return roll_back(restored, "configuration", fmt::format("stable version '{}' is not in the configuration", state.stable));
  const auto spec = stored_spec(*restored.rollout);
  if (!spec) return roll_back(restored, "configuration", spec.error().message);
  if (!spec->baseline.empty() && !knows(config, spec->baseline))
    return roll_back(restored, "configuration",
                     fmt::format("version '{}' of the baseline arm is not in the configuration", spec->baseline));
  if (!page) return pause_at_zero(restored, "the weights page was lost");

  const Split applied = Split::unpack(page->word);
  if (applied.canary == Split::kNoCanary && is_after(applied.epoch, state.epoch)) {
    const bool said = !page->cause.empty();
    return roll_back(restored, said ? page->cause : "restart", said ? page->reason : "rolled back just before the router stopped");
  }
  if (!means(*page, applied.canary, state.canary) || !means(*page, applied.stable, state.stable))
    return pause_at_zero(restored, "its first weight had not been applied");
  restored.events.push_back({std::string(kRestarted), "the rollout continues; evidence starts again"});
  if (applied.weight_ppm < state.weight_ppm || applied.shadow_ppm < state.shadow_ppm) take_back_rise(restored, *spec, applied);
}

}  // namespace

Result<rollout::Spec> stored_spec(const store::RolloutRecord& record) {
  SERIN_TRY(const config::Node document, config::Node::parse(record.spec, "stored specification"));
  return rollout::parse_spec(document);
}

Restored restore_gone(const store::ServiceRecord& record) {
  Restored restored{.stable = record.stable, .epoch = record.epoch, .rollout = record.rollout, .events = {}};
  if (restored.rollout && !rollout::is_over(restored.rollout->report.state.phase))
    roll_back(restored, "configuration", "router.yaml permits fewer rollouts at once");
  return restored;
}

Restored restore(const ServiceConfig& config, const std::optional<store::ServiceRecord>& record,
                 const std::optional<store::WeightsPage::Found>& page, const std::optional<std::string>& stable_of_service) {
  Restored restored;
  if (!record && stable_of_service) {
    restored.stable = *stable_of_service;
    restored.epoch = page ? page->epoch + 1 : 0;
    return restored;
  }
  if (!record) {
    restored.stable = stable_of(config, page);
    restored.epoch = page ? page->epoch + 1 : 0;  // answers and If-Match of before must not fit
    if (page)
      restored.events.push_back(
          {"state_lost", fmt::format("version {} gets all traffic; a rollout that was in progress is lost", restored.stable)});
    return restored;
  }
  restored.stable = record->stable;
  // An epoch that the page alone knows was seen by somebody, together with a state that was never written: it stays that state's.
  restored.epoch = page && page->epoch > record->epoch ? page->epoch + 1 : record->epoch;
  restored.rollout = record->rollout;
  if (stable_of_service && *stable_of_service != restored.stable) {
    restored.stable = *stable_of_service;
    restored.epoch += 1;
    end_for_stable(restored);
  }
  if (!knows(config, restored.stable)) {
    restored.stable = config.initial_stable;
    restored.epoch += 1;
    restored.events.push_back(
        {"stable_missing", fmt::format("stable version '{}' is no longer in the configuration: version {} gets all traffic", record->stable,
                                       restored.stable)});
  }
  if (restored.rollout && !rollout::is_over(restored.rollout->report.state.phase)) continue_rollout(restored, config, page);
  return restored;
}

}  // namespace serin::router
