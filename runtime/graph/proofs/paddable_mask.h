// paddable_mask.h: proves whether a mask hides the padding from a softmax, but not the other elements.
#pragma once

#include "runtime/graph/proofs/paddable_state.h"

namespace serin::graph {

/// `logits` are the operand of a softmax along the axis that is `from_end` axes before the last one, or the mask of an Attention, which
/// adds its scores. Returns the inputs that say which elements count, if the padding has no influence. Errors contain the reason only:
/// "scores may reach 12345, the mask is -10000".
Result<Counted> hidden_by_mask(const PadFacts& facts, ValueId logits, size_t from_end, const Node* attention = nullptr);

/// Whether a mask, or its sum, may hide everything that counts from a query. The result of such a query depends on the length.
bool knows_queries(const PadFacts& facts, ValueId mask, size_t from_end);
inline constexpr std::string_view kKnowsQueries =
    "its mask tells queries apart, and one that it leaves nothing that counts would share with it";

/// Whether a query in the padding may attend, with this mask of an Attention, to everything that all queries before it may attend to. A
/// query that may attend to nothing gives NaN.
bool leaves_something(const PadFacts& facts, ValueId mask);

}  // namespace serin::graph
