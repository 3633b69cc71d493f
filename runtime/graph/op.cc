// op.cc: the operators' names and operand counts, from the one list in op.h.

#include "runtime/graph/op.h"

#include <algorithm>
#include <array>

namespace serin::graph {
namespace {

constexpr auto kSchemas = std::to_array<OpSchema>({
#define SERIN_X(name, min, max, out) {#name, min, max, out},
    SERIN_GRAPH_OPS(SERIN_X)
#undef SERIN_X
});

}  // namespace

const OpSchema& schema(Op op) { return kSchemas[static_cast<size_t>(op)]; }

std::optional<Op> find_op(std::string_view name) {
  const auto* found = std::ranges::find(kSchemas, name, &OpSchema::name);
  if (found == kSchemas.end()) return std::nullopt;
  return static_cast<Op>(found - kSchemas.begin());
}

}  // namespace serin::graph
