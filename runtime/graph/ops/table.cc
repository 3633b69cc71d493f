// table.cc: which shape rule an operator follows, and how small integers go through it: two columns of all.def.

#include <array>

#include "runtime/graph/ops/families.h"

namespace serin::graph {
namespace {

constexpr auto kRules = std::to_array<OpRules>({
#define SERIN_OP(name, least, most, results, infer, values, ...) {infer, values},
#include "runtime/graph/ops/all.def"
});
static_assert(kRules.size() == kOpCount);

}  // namespace

const OpRules& rules(Op op) { return kRules[static_cast<size_t>(op)]; }

}  // namespace serin::graph
