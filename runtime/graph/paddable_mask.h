// paddable_mask.h: whether a mask hides what is behind the end from a softmax, and not the rest from what is behind it.
#pragma once

#include "runtime/graph/paddable_rules.h"

namespace serin::graph {

/// `logits`, of which a softmax is taken along the axis that is `from_end` axes before the last one; or the mask of an Attention, which adds its scores. The inputs that
/// say which elements count, where nothing is left of what is behind the end. Errors hold the reason only: "scores may reach 12345, the mask is -10000".
Result<PaddedInputs> hidden_by_mask(const PadFacts& facts, ValueId logits, size_t from_end, const Node* attention = nullptr);

/// Whether a query behind the end may look, with this mask of an Attention, at whatever all queries before it may look at. One that may look at nothing is NaN.
bool leaves_something(const PadFacts& facts, ValueId mask);

}  // namespace serin::graph
