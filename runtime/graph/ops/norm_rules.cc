// norm_rules.cc: shape rules of one family: normalisations, losses, training steps.

#include "runtime/graph/ops/families.h"

namespace serin::graph {

std::span<const OpRules> norm_rules() { return {}; }

}  // namespace serin::graph
