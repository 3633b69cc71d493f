// phase.h: The phases of a rollout, by the words that users of Argo and Flagger know.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace serin::rollout {

enum class Phase : uint8_t { kProgressing, kPaused, kInconclusive, kPromoting, kBaking, kSucceeded, kRolledBack };
std::string_view phase_name(Phase phase);           ///< "Progressing", ...: Argo's and Flagger's words
std::span<const std::string_view> words_of(Phase);  ///< the names of all phases, in order
std::optional<Phase> find_phase(std::string_view name);
inline bool is_over(Phase phase) { return phase == Phase::kSucceeded || phase == Phase::kRolledBack; }

}  // namespace serin::rollout
