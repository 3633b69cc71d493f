// phase.cc: names the phases in words that users of Argo and Flagger know.

#include "router/rollout/phase.h"

#include <algorithm>
#include <iterator>

namespace serin::rollout {
namespace {

constexpr std::string_view kNames[] = {"Progressing", "Paused", "Inconclusive", "Promoting", "Baking", "Succeeded", "RolledBack"};

}  // namespace

std::string_view phase_name(Phase phase) { return kNames[static_cast<size_t>(phase)]; }

std::span<const std::string_view> words_of(Phase) { return kNames; }

std::optional<Phase> find_phase(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<Phase>(found - std::begin(kNames));
}

}  // namespace serin::rollout
