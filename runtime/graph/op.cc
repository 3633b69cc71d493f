// op.cc: the operators' names and operand counts, from the rows of ops/all.def.

#include "runtime/graph/op.h"

#include <algorithm>
#include <array>

namespace serin::graph {
namespace {

constexpr auto kSchemas = std::to_array<OpSchema>({
#define SERIN_OP(name, least, most, results, ...) {#name, least, most, results},
#include "runtime/graph/ops/all.def"
});

}  // namespace

const OpSchema& schema(Op op) { return kSchemas[static_cast<size_t>(op)]; }

std::optional<Op> find_op(std::string_view name) {
  const auto* found = std::ranges::find(kSchemas, name, &OpSchema::name);
  if (found == kSchemas.end()) return std::nullopt;
  return static_cast<Op>(found - kSchemas.begin());
}

}  // namespace serin::graph
