// eval_latency.h: how long models take for one row, with the steps before and after them. The only part of a report that a clock decides.
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/cli/offline/row_model.h"

namespace serin::cli {

/// Names of metrics, for gates; in milliseconds.
inline constexpr std::array<std::string_view, 3> kLatencyMetrics = {"latency_p50", "latency_p90", "latency_p99"};

struct EvalLatency {
  int64_t rows = 0;                           ///< of each model, one at a time
  std::vector<std::array<double, 3>> models;  ///< p50, p90 and p99 of each, in milliseconds
};

struct TimedModel {
  const RowModel* model = nullptr;
  const ColumnMap* map = nullptr;
};

/// Runs the models in turns on one thread, so that they meet the same machine: at most 1,000 rows, and about ten seconds. Rows that are at
/// fault do not count. kInvalidArgument: all of them are.
Result<EvalLatency> measure_latency(const datasets::Dataset& data, const std::vector<TimedModel>& models);

}  // namespace serin::cli
