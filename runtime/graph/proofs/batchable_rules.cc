// batchable_rules.cc: how the batch axis moves through operators of single elements and rows; ops/*.def say which operator has which rule
// (batchable.cc says what is tracked).
//
// An operator of which nothing is known is refused: what an operator does to the batch must have been thought about. Operators that choose one scale for a whole
// tensor (DynamicQuantizeLinear) mix items although their shapes do not show it.

#include <fmt/format.h>

#include <numeric>
#include <optional>

#include "runtime/graph/proofs/batchable_rule.h"

namespace serin::graph {

namespace {

using State = BatchState;
using Outcome = Result<BatchState>;

}  // namespace

Outcome BatchRule::run() const {
  static constexpr Outcome (BatchRule::* kRules[])() const = {
#define SERIN_OP(name, least, most, results, infer, values, batch, ...) &BatchRule::batch,
#include "runtime/graph/ops/all.def"
  };
  return (this->*kRules[static_cast<size_t>(node_.op)])();
}

/// Operands from `first` on must not depend on the batch.
Status BatchRule::rest_is_same(size_t first) const {
  for (size_t i = first; i < node_.inputs.size(); ++i) {
    if (!state(i).is_same()) return refuse(fmt::format("operand {} depends on the batch", i));
  }
  return {};
}

Outcome BatchRule::elementwise() const {
  std::vector<size_t> all(node_.inputs.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return elementwise_of(all);
}

/// Broadcasting aligns the last axes: where those of the operands that have rows meet, they must agree.
Outcome BatchRule::elementwise_of(std::span<const size_t> operands) const {
  std::optional<State> rows;
  bool sizes = false;
  const auto rank = static_cast<int64_t>(result_dims().size());
  for (const size_t i : operands) {
    const State& each = state(i);
    sizes |= each.is_size();
    if (!each.is_rows()) continue;
    const State there = State::rows(each.axis + rank - static_cast<int64_t>(dims(i).size()), each.block);
    if (rows && (rows->axis != there.axis || !(rows->block == there.block))) return refuse("brings different axes of the batch together");
    rows = there;
  }
  if (rows && sizes) return refuse("computes with the size of the batch");
  if (rows) return *rows;
  return sizes ? size_of() : State{};
}

/// PRelu, QuantizeLinear and its inverse, tables of 256 bytes: functions of an element of x and of parameters that do not tell the items apart.
Outcome BatchRule::with_parameters() const {
  if (!state(0).is_rows()) return refuse("computes with the size of the batch");
  const auto rank = static_cast<int64_t>(dims(0).size());
  for (size_t i = 1; i < node_.inputs.size(); ++i) {
    const bool own_rows =
        state(i).is_rows() && dims(i).size() == dims(0).size() && state(i).axis == state(0).axis && state(i).block == state(0).block;
    if (own_rows && node_.op != Op::kPRelu) continue;  // a scale for each block of each item
    if (!state(i).is_same()) return refuse(fmt::format("operand {} depends on the batch", i));
    if (node_.inputs[i] == kNone || graph::product(dims(i)) == Dim(1)) continue;
    const auto own = static_cast<int64_t>(dims(i).size());
    const bool along = node_.op != Op::kPRelu && own == 1;  // one parameter for each place on "axis"
    const int64_t there = along ? 0 : state(0).axis - (rank - own);
    const bool apart =
        along ? axis_attribute(1, dims(0).size()) != state(0).axis : there < 0 || dims(i)[static_cast<size_t>(there)] == Dim(1);
    if (!apart) return refuse(fmt::format("operand {} differs along the batch axis", i));
  }
  return state(0);
}

/// One answer for each row of x [n, features].
Outcome BatchRule::table() const {
  if (dims(0).size() != 2 || !state(0).is_rows() || state(0).axis != 0)
    return refuse("has the batch elsewhere than in the rows of a table");
  return state(0);
}

/// a, scale, zero point, b, scale, zero point, scale and zero point of the result.
Outcome BatchRule::quantised_binary() const {
  for (const size_t i : {1, 2, 4, 5, 6, 7}) {
    if (!state(i).is_same()) return refuse(fmt::format("operand {} depends on the batch", i));
  }
  constexpr size_t kOperands[] = {0, 3};
  return elementwise_of(kOperands);
}

Result<BatchState> batch_rule(const BatchFacts& facts, const Node& node, size_t result) { return BatchRule(facts, node, result).run(); }

}  // namespace serin::graph
