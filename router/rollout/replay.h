// replay.h: Decides again from the record of a verdict.
//
//   const Replay again = replay(record);          again.rolled_back, again.bits
#pragma once

#include <cstddef>
#include <vector>

#include "router/rollout/verdict_record.h"

namespace serin::rollout {

struct Replay {
  bool rolled_back = false;
  size_t decided_by = 0;     ///< index of the event that decided
  std::vector<double> bits;  ///< log2 of the evidence after each event
};
Replay replay(const VerdictRecord& record);

}  // namespace serin::rollout
