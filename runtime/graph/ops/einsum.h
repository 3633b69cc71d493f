// einsum.h: parses the equation of an Einsum and resolves "..." and implicit results for operands of known ranks.
//
//   parse_einsum("...ij,jk", {4, 2})   ->   operands {"01ij", "jk"}, result "01ik"
//
// Labels are letters. The axes of "..." become the labels '0', '1', ..., counted so that the last one of each operand is the same.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace serin::graph {

struct Einsum {
  std::vector<std::string> operands;  ///< one label for each axis
  std::string result;
};

/// kInvalidArgument, with the error in the equation.
Result<Einsum> parse_einsum(std::string_view equation, std::span<const size_t> ranks);

}  // namespace serin::graph
