// classifier_rules.cc: shape rules of one family: the operators of ai.onnx.ml.

#include "runtime/graph/ops/families.h"

namespace serin::graph {

std::span<const OpRules> classifier_rules() { return {}; }

}  // namespace serin::graph
