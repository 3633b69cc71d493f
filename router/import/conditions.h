// conditions.h: "result[0] >= 0.95" and what becomes of it: a query whose number, once it is above `max`, speaks against the canary. Internal.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace serin::imports {

struct Limit {
  std::string query;
  double max = 0;
};

/// `condition` compares result or result[0] with a number; `success`: it holds where all is well, else where it is not. Nothing: more than that.
std::optional<Limit> limit_of(std::string_view condition, bool success, const std::string& query);
/// The number of `query` must be at least that.
Limit at_least(const std::string& query, double min);

}  // namespace serin::imports
