// quant_rules.cc: shape rules of one family: quantisation and narrow types.

#include "runtime/graph/ops/families.h"

namespace serin::graph {

std::span<const OpRules> quant_rules() { return {}; }

}  // namespace serin::graph
