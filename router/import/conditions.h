// conditions.h: Turns a condition such as "result[0] >= 0.95" into a query that counts against the canary above `max`. Internal.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace serin::imports {

struct Limit {
  std::string query;
  double max = 0;
};

/// `condition` compares result or result[0] with a number. `success`: it is true for a good canary; otherwise for a bad one. Nothing: it is
/// more complex.
std::optional<Limit> limit_of(std::string_view condition, bool success, const std::string& query);
/// The number of `query` must be at least `min`.
Limit at_least(const std::string& query, double min);

}  // namespace serin::imports
