// paddable_interval.h: bounds all elements of a value, in the original part and in the padding.
#pragma once

#include "runtime/graph/proofs/paddable_state.h"

namespace serin::graph {

/// Computes the bounds of the results of a node whose operands are not all kSame. Exporters test whether a Range from 0 is below 0, and
/// combine the result with the mask.
PadInterval interval_of(const PadFacts& facts, const Node& node);

}  // namespace serin::graph
