// selection_rules.cc: shape rules of one family: gathering, scattering, sorting, boxes.

#include "runtime/graph/ops/families.h"

namespace serin::graph {

std::span<const OpRules> selection_rules() { return {}; }

}  // namespace serin::graph
