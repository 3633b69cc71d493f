// dynamic_rules.cc: shape rules of one family: sequences, optionals and Scan.

#include "runtime/graph/ops/families.h"

namespace serin::graph {

std::span<const OpRules> dynamic_rules() { return {}; }

}  // namespace serin::graph
