// math_rules.cc: shape rules of one family: functions of single elements, bits, windows, transforms, random numbers.

#include "runtime/graph/ops/families.h"

namespace serin::graph {

std::span<const OpRules> math_rules() { return {}; }

}  // namespace serin::graph
