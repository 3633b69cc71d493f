// verdict_record.h: The reason for a guard's decision, in numbers that can be checked.
//
// It contains the question, the threshold, the processes before the deciding events, and the events. It has no seed and no clock: the same
// record always replays to the same decision (replay.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "router/rollout/mixture_state.h"
#include "router/rollout/report.h"
#include "runtime/base/config.h"

namespace serin::rollout {

struct VerdictRecord {
  std::string guard;  ///< "err"; empty: no guard (a person decided)
  enum class Question : uint8_t {
    kWorse,  ///< more often on the canary than its share explains?
    kAbove,  ///< above the limit p0?
    kAboveAndWorse,
    kSilence,       ///< events are silences; `trip_value` of them roll back
    kSlower,        ///< slower than stable, by the ranks of its answers?
    kSamples,       ///< events are samples of a query; `trip_value` of them above p0 in a row roll back
    kAboveAndSame,  ///< above the limit p0, from a model that gives the same numbers otherwise? (few_guard.h)
    kUsage,         ///< events are measurements of a resource; more than half of them bad? (even_chance.h)
    kOutcomes       ///< are reported outcomes worse on the canary by more than p0? `worse` is the process after the last event
  } question = Question::kWorse;
  double trip_value = 0;
  double tolerated_ratio = 1;
  bool mirrored = false;  ///< asks the reverse: events too rare on the canary
  double p0 = 0, cap = 0;
  MixtureState worse, above;  ///< before the first of the events
  std::optional<double> same_p0;
  std::optional<MixtureState> same;  ///< of kAboveAndSame, like `above`
  std::vector<DecidingEvent> events;
};

std::span<const std::string_view> words_of(VerdictRecord::Question);

/// Reads what kVerdictRecord (verdict_schema.h) writes.
Result<VerdictRecord> parse_record(const config::Node& node);

}  // namespace serin::rollout
