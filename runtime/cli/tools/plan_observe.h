// plan_observe.h: asks servers that run for what `serin plan` has predicted.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/cli/tools/prometheus_source.h"
#include "runtime/planner/answer.h"
#include "runtime/planner/observed.h"

namespace serin::cli {

/// Compares an answer with the metrics of `serin serve`: memory of the process and of each model, and the duration of runs where the plan
/// has a calibrated one. `address` is one of
/// - http://HOST:PORT, the metrics port of one server; without a path, /metrics
/// - prometheus+http://HOST:PORT, a Prometheus server (prometheus_source.h): figures of all servers that have the models, over a window, with
///   throughput, size of batches and busy time
///
/// kInvalidArgument: no such address. kUnavailable: nothing answers there, or what does is no page of metrics, or has none of the models.
Result<planner::Observed> observe(const std::string& address, const PrometheusFlags& flags, const planner::Answer& answer);

}  // namespace serin::cli
