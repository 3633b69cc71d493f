// verdict_record.h: why a guard decided as it did, in numbers that anybody can check: the question, the threshold, its processes before the
// deciding events, and the events. No seed and no clock: the same record always replays to the same decision.
//
//   const Replay again = replay(record);          again.rolled_back, again.bits
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "router/rollout/mixture_state.h"
#include "router/rollout/rollout.h"
#include "runtime/base/config.h"

namespace serin::rollout {

struct VerdictRecord {
  std::string guard;  ///< "err"; empty: nobody judged (a person decided)
  enum class Question : uint8_t {
    kWorse,  ///< more often on the canary than its share explains?
    kAbove,  ///< above the limit p0?
    kAboveAndWorse,
    kSilence,  ///< events are silences; rolled back at so many as `trip_value`
    kSamples,  ///< events are samples of a query; rolled back at so many above p0 in a row as `trip_value`
  } question = Question::kWorse;
  double trip_value = 0;
  double tolerated_ratio = 1;
  bool mirrored = false;  ///< asks the reverse: what the canary does too rarely
  double p0 = 0, cap = 0;
  MixtureState worse, above;  ///< before the first of the events
  std::vector<DecidingEvent> events;
};

std::string_view question_word(VerdictRecord::Question question);

struct Replay {
  bool rolled_back = false;
  size_t decided_by = 0;     ///< index of the event that decided
  std::vector<double> bits;  ///< log2 of the evidence after each event
};
Replay replay(const VerdictRecord& record);

/// JSON, with every digit that the numbers have.
std::string print_record(const VerdictRecord& record);
Result<VerdictRecord> parse_record(const config::Node& node);

}  // namespace serin::rollout
