// text_rules.cc: shape rules of one family: strings.

#include "runtime/graph/ops/families.h"

namespace serin::graph {

std::span<const OpRules> text_rules() { return {}; }

}  // namespace serin::graph
