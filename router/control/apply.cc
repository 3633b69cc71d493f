#include "router/control/apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace serin::router {
namespace {

using rollout::Phase;

constexpr std::array<std::string_view, 4> kNames = {"started", "replaced", "unchanged", "blocked"};

bool runs(const TrackRollout& track) { return !track.state.id.empty() && !rollout::is_over(track.state.phase); }

/// The one that is named like `wanted`: the one that runs, else the latest.
const TrackRollout* find_same(const rollout::Spec& wanted, std::span<const TrackRollout> tracks, std::string_view stable) {
  const TrackRollout* found = nullptr;
  for (const TrackRollout& track : tracks) {
    if (track.state.id.empty() || track.state.canary != wanted.canary || track.revision != wanted.revision) continue;
    // One that made room for another, and one whose promotion is history, decide nothing.
    const bool promoted = track.state.phase == Phase::kSucceeded && wanted.canary == stable;
    if (!runs(track) && !promoted && !was_rolled_back(wanted, track)) continue;
    const bool later = found == nullptr || (runs(track) != runs(*found) ? runs(track) : track.started_wall_ms > found->started_wall_ms);
    if (later) found = &track;
  }
  return found;
}

std::string name_of(const rollout::Spec& spec) {
  return spec.revision.empty() ? fmt::format("version '{}'", spec.canary)
                               : fmt::format("version '{}' with revision '{}'", spec.canary, spec.revision);
}

ApplyDecision about_same(const rollout::Spec& wanted, const TrackRollout& same) {
  const rollout::State& state = same.state;
  const std::string name = name_of(wanted);
  if (runs(same))
    return {ApplyAction::kUnchanged, &same,
            fmt::format("{} is rolled out by '{}', which is {}", name, state.id, rollout::phase_name(state.phase))};
  if (state.phase == Phase::kSucceeded) return {ApplyAction::kUnchanged, &same, fmt::format("{} was promoted by '{}'", name, state.id)};
  return blocked_by(wanted, same);
}

}  // namespace

std::string_view action_name(ApplyAction action) { return kNames[static_cast<size_t>(action)]; }

ApplyDecision decide_apply(const rollout::Spec& wanted, std::span<const TrackRollout> tracks, std::string_view stable) {
  if (const TrackRollout* same = find_same(wanted, tracks, stable)) return about_same(wanted, *same);
  const auto canary =
      std::ranges::find_if(tracks, [&](const TrackRollout& track) { return runs(track) && track.state.canary == wanted.canary; });
  const TrackRollout* in_the_way = canary != tracks.end()                       ? &*canary
                                   : tracks.size() == 1 && runs(tracks.front()) ? &tracks.front()
                                                                                : nullptr;
  if (in_the_way != nullptr)
    return {ApplyAction::kReplace, in_the_way, fmt::format("{} takes the place of rollout '{}'", name_of(wanted), in_the_way->state.id)};
  // After the loss of a store: what is stable already needs no rollout.
  if (wanted.canary == stable) return {ApplyAction::kUnchanged, nullptr, fmt::format("version '{}' is stable already", wanted.canary)};
  return {};
}

std::string revision_of(const std::string& spec) {
  const auto document = config::Node::parse(spec, "the store");
  const auto read = document ? rollout::parse_spec(*document) : Result<rollout::Spec>(document.error());
  return read ? read->revision : "";
}

TrackRollout read_verdict(const std::string& verdict) {
  TrackRollout of;
  const auto document = config::Node::parse(verdict, "verdict");
  if (!document) return of;
  const auto text = [&](std::string_view key) {
    auto found = document->text(key, "");
    return found ? *std::move(found) : std::string();
  };
  of.track = text("service");
  of.spec = text("spec");
  of.revision = revision_of(of.spec);
  of.state.id = text("id");
  of.state.stable = text("stable");
  of.state.canary = text("canary");
  of.state.phase = rollout::find_phase(text("phase")).value_or(Phase::kProgressing);
  of.state.cause = text("cause");
  of.state.reason = text("reason");
  return of;
}

bool was_rolled_back(const rollout::Spec& wanted, const TrackRollout& earlier) {
  // What made room for another one, or for a new configuration, was not judged.
  const bool judged = earlier.state.cause != "superseded" && earlier.state.cause != "configuration";
  return judged && earlier.state.phase == Phase::kRolledBack && earlier.state.canary == wanted.canary &&
         earlier.revision == wanted.revision;
}

ApplyDecision blocked_by(const rollout::Spec& wanted, const TrackRollout& earlier) {
  const rollout::State& state = earlier.state;
  return {ApplyAction::kBlocked, &earlier,
          fmt::format("{} was rolled back by '{}' ({}: {}); another version or another revision permits a new rollout", name_of(wanted),
                      state.id, state.cause, state.reason)};
}

std::string as_stored(rollout::Spec wanted, const TrackRollout* of) {
  if (of == nullptr) return rollout::print_spec(wanted);
  wanted.service = of->track;
  if (wanted.stable.empty()) wanted.stable = of->state.stable;
  if (wanted.baseline == wanted.stable) wanted.baseline.clear();
  if (wanted.sticky.on() && wanted.sticky.salt.empty())
    if (const auto document = config::Node::parse(of->spec, "spec"))
      if (const auto spec = rollout::parse_spec(*document)) wanted.sticky.salt = spec->sticky.salt;  // it was drawn at the start
  return rollout::print_spec(wanted);
}

}  // namespace serin::router
