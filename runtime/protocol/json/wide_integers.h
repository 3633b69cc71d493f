// wide_integers.h: accepts integers of more than 64 bits in JSON. Internal to runtime/protocol.
//
// JSON's numbers have no type: other servers read such a number as a double, like 1e20; simdjson refuses it. A text is searched for them
// only after it was refused. Each is rewritten in place as the nearest double, so that offsets stay. Seventeen digits identify a double,
// and the rest of the twenty places has room for the power of ten.
#pragma once

#include <span>

namespace serin::protocol {

/// Rewrites such integers outside strings and returns whether there were any. Integers beyond the range of a double stay, and so do
/// integers of 64 bits, which integer tensors need exactly.
bool round_wide_integers(std::span<char> text);

}  // namespace serin::protocol
