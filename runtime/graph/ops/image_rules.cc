// image_rules.cc: shape rules of one family: resizing, sampling, regions, and the convolutions beside Conv.

#include "runtime/graph/ops/families.h"

namespace serin::graph {

std::span<const OpRules> image_rules() { return {}; }

}  // namespace serin::graph
