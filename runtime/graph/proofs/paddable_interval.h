// paddable_interval.h: between which numbers all elements of a value lie, on either side of the end.
#pragma once

#include "runtime/graph/proofs/paddable_state.h"

namespace serin::graph {

/// Of the results of a node whose operands are not all the same. Exporters ask whether a Range from 0 is below 0, and join the answer with the mask.
PadInterval interval_of(const PadFacts& facts, const Node& node);

}  // namespace serin::graph
