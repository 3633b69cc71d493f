// eval_gate.h: the thresholds that a gate requires: "top1 >= 0.95".
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace serin::cli {

/// Without spaces at both ends.
std::string_view trimmed(std::string_view text);

struct Requirement {
  std::string text;  ///< as the user wrote it
  std::string metric;
  enum class Relation : uint8_t { kAtLeast, kAbove, kAtMost, kBelow } relation = Relation::kAtLeast;
  double bound = 0;

  /// False for NaN: a metric that cannot be computed passes no gate.
  bool holds(double value) const;
};

/// "top1 >= 95%" is 0.95. kInvalidArgument: it has another form.
Result<Requirement> parse_requirement(const std::string& text);

/// "0.5pt" is half a percentage point, 0.005; "0.5%" likewise; "0.02" is itself. kInvalidArgument for others and for negative ones.
Result<double> parse_margin(const std::string& text);

}  // namespace serin::cli
