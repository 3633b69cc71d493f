// paddable_mask.h: whether a mask hides what is behind the end from a softmax, and not the rest from what is behind it.
#pragma once

#include "runtime/graph/proofs/paddable_state.h"

namespace serin::graph {

/// `logits`, of which a softmax is taken along the axis that is `from_end` axes before the last one; or the mask of an Attention, which adds its scores. The inputs that
/// say which elements count, where nothing is left of what is behind the end. Errors hold the reason only: "scores may reach 12345, the mask is -10000".
Result<Counted> hidden_by_mask(const PadFacts& facts, ValueId logits, size_t from_end, const Node* attention = nullptr);

/// Whether a mask, or what it was added to, may hide all that counts from a query. What such a query answers depends on the length.
bool knows_queries(const PadFacts& facts, ValueId mask, size_t from_end);
inline constexpr std::string_view kKnowsQueries =
    "its mask tells queries apart, and one that it leaves nothing that counts would share with it";

/// Whether a query behind the end may look, with this mask of an Attention, at whatever all queries before it may look at. One that may look at nothing is NaN.
bool leaves_something(const PadFacts& facts, ValueId mask);

}  // namespace serin::graph
