// goal.h: what must hold of a model that is served: "top1 >= 95 %, p99 <= 50 ms".
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cli/offline/eval_gate.h"

namespace serin::cli {

/// The latencies that a goal can name.
inline constexpr std::array<std::string_view, 4> kPercentiles = {"p50", "p90", "p99", "p999"};

struct Goal {
  std::vector<Requirement> quality;  ///< metrics of `serin eval`
  std::vector<Requirement> latency;  ///< percentiles of answered requests; upper bounds in milliseconds
};

/// Conditions between commas. `accuracy` is `top1`. Times are in us, ms (the default) or s. kInvalidArgument names the condition.
Result<Goal> parse_goal(const std::string& text);

}  // namespace serin::cli
