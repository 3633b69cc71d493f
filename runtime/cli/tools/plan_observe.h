// plan_observe.h: asks a server that runs for what `serin plan` has predicted.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/planner/answer.h"
#include "runtime/planner/observed.h"

namespace serin::cli {

/// Compares an answer with the metrics of `serin serve`: memory of the process and of each model, and the duration of runs where the plan
/// has a calibrated one. `url`: of the metrics port; without a path, /metrics. kInvalidArgument: no URL. kUnavailable: nothing answers there,
/// or what does is no page of metrics, or the server has none of the models.
Result<planner::Observed> observe(const std::string& url, const planner::Answer& answer);

}  // namespace serin::cli
