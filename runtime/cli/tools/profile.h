// profile.h: where the time of a run goes; what `serin bench --profile` prints.
#pragma once

#include <boost/json/array.hpp>
#include <string>
#include <vector>

#include "runtime/engine/describe.h"

namespace serin::cli {

struct StepTime {
  engine::StepInfo step;
  double ms = 0;  ///< of one run
};

/// Two tables: a line for each pair of operator and kernel, then the slowest steps by name.
std::string profile_table(const std::vector<StepTime>& times);
/// A row for each step, in the order of execution.
boost::json::array profile_rows(const std::vector<StepTime>& times);

}  // namespace serin::cli
