// block.h: the operations of a block, one after another.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "runtime/formats/paddle/program.h"
#include "runtime/formats/paddle/scope.h"

namespace serin::formats::paddle {

/// Imports the operations of a block, in order.
void import_block(Scope& scope, size_t block);

/// Values that the block, and bodies in it, read before they define them; in the order of first use.
std::vector<std::string> free_values(const Program& program, size_t block);
/// Values that the operations of the block define, without those of bodies in it.
std::set<std::string, std::less<>> defined_values(const Program& program, size_t block);

}  // namespace serin::formats::paddle
