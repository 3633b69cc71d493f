// profile.h: prints the time of each step of a run, for `serin bench --profile`.
#pragma once

#include <boost/json/array.hpp>
#include <string>
#include <vector>

#include "runtime/engine/describe.h"

namespace serin::cli {

struct StepTime {
  engine::StepInfo step;
  double ms = 0;  ///< time of one run
};

/// Makes two tables: a line for each pair of operator and kernel, then the slowest steps by name.
std::string profile_table(const std::vector<StepTime>& times);
/// Returns a row for each step, in the order of execution.
boost::json::array profile_rows(const std::vector<StepTime>& times);

}  // namespace serin::cli
