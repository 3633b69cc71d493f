// wide_integers.h: integers of more than 64 bits in a text that is JSON otherwise. JSON's numbers have no type: to other servers such a one is a double, as 1e20 is; simdjson takes none of it.
//
// Only once a text was refused is it looked through for them. Each is written anew where it stands, as the nearest double: seventeen digits tell it from all
// others, and what is left of twenty places has room for the power of ten, so that offsets stay what they are. Internal to runtime/protocol.
#pragma once

#include <span>

namespace serin::protocol {

/// Whether there were any outside strings. Those that no double holds are left, and so is what 64 bits hold, which tensors of integers need to the last digit.
bool round_wide_integers(std::span<char> text);

}  // namespace serin::protocol
