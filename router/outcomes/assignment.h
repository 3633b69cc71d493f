// assignment.h: What an answer says of the draw of its request, and a later report of the outcome repeats:
//
//   x-serin-assigned: 2;1=950000,2=50000;00000000c0ffee42;1764437000123
//
// First the version that was drawn. Then the shares of the versions among which it was, in parts per million. Last the ID of the draw and its
// time, in milliseconds since 1970.
//
// So no router needs to remember the request: an outcome may come days later, after restarts, and at any router. Odd
// characters of names are escaped (%3B).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"

namespace serin::router {

inline constexpr std::string_view kAssignedHeader = "x-serin-assigned";

struct Assignment {
  std::string version;
  std::vector<std::pair<std::string, uint32_t>> shares;  ///< at least two, none of them 0; together at most a million
  uint64_t id = 0;
  std::optional<uint64_t> at_ms;  ///< of the draw, since 1970; nothing: an older router drew

  uint32_t share_of(std::string_view name) const;  ///< 0: it was not among them
};

/// The version, and its share in parts per million.
using NamedShare = std::pair<std::string_view, uint32_t>;

/// Appends the text; `version` is one of `shares`. Shares of 0 are left out. `at_ms`: of the draw, since 1970.
void append_assignment(std::string& out, std::string_view version, std::span<const NamedShare> shares, uint64_t id, uint64_t at_ms);
/// kInvalidArgument: not such a text.
Result<Assignment> parse_assignment(std::string_view text);

/// 16 lower-case hexadecimal digits.
void append_id(std::string& out, uint64_t id);

}  // namespace serin::router
