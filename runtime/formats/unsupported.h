// unsupported.h: says all at once which parts of a model no reader knows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace serin::formats {

/// kUnsupported: "2 nodes use what is not supported: 'a' (Frob), 'b' (Nicate)"; of many, the first 20 and the number of the others.
/// `one` and `many` name the parts and the verb for one and for several of them.
Error unsupported_nodes(const std::vector<std::string>& nodes, std::string_view one = "node uses what is",
                        std::string_view many = "nodes use what is");

}  // namespace serin::formats
