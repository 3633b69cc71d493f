// verdict_json.h: A verdict as it is stored and shown: the specification, the decision, and the record that replays to it.
#pragma once

#include <cstdint>
#include <string>

#include "router/rollout/verdict_record.h"
#include "router/store/store.h"

namespace serin::store {

/// One line. `record` without a guard: no judge decided.
std::string verdict_json(const RolloutRecord& rollout, const rollout::VerdictRecord& record, int64_t wall_ms);

}  // namespace serin::store
