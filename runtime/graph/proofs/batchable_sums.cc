// batchable_sums.cc: the rules of operators that add up: products, reductions, what works along one axis. None of them may do so over the batch.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runtime/graph/ops/einsum.h"
#include "runtime/graph/proofs/batchable_rule.h"

namespace serin::graph {

namespace {

using State = BatchState;
using Outcome = Result<BatchState>;

}  // namespace

/// Operands a and b of the node; what stands between them and before `last` is parameters, the rest broadcasts to the result.
Outcome BatchRule::product_of(size_t a, size_t b, size_t last) const {
  const auto rank_a = static_cast<int64_t>(dims(a).size()), rank_b = static_cast<int64_t>(dims(b).size());
  const auto rank = static_cast<int64_t>(result_dims().size());
  if (state(a).is_size() || state(b).is_size()) return refuse("computes with the size of the batch");
  std::optional<State> rows;
  if (state(a).is_rows()) {
    const bool transposed = node_.integer("transA", 0) != 0;
    const int64_t inner = transposed && rank_a > 1 ? rank_a - 2 : rank_a - 1;
    if (state(a).axis == inner) return refuse("sums over the batch axis");
    // Counted from the end, as the leading axes broadcast; the row axis is the last but one of the result, or the last if b is a vector.
    int64_t from_end = rank_a - state(a).axis;
    if (transposed && from_end == 1) from_end = 2;
    rows = State::rows(rank - (rank_b == 1 ? from_end - 1 : from_end), state(a).block);
  }
  if (state(b).is_rows()) {
    if (state(b).axis >= rank_b - 2) return refuse("multiplies by a matrix with the batch in its rows or columns");
    const State there = State::rows(rank - (rank_b - state(b).axis) + (rank_a == 1 ? 1 : 0), state(b).block);
    if (rows && (rows->axis != there.axis || !(rows->block == there.block))) return refuse("brings different axes of the batch together");
    rows = there;
  }
  for (size_t i = 0; i < node_.inputs.size(); ++i) {
    if (i == a || i == b || node_.inputs[i] == kNone || state(i).is_same()) continue;
    const int64_t axis = state(i).axis + rank - static_cast<int64_t>(dims(i).size());
    if (i < last || !state(i).is_rows() || !rows || axis != rows->axis || !(state(i).block == rows->block))
      return refuse(fmt::format("operand {} has the batch elsewhere", i));
  }
  if (!rows) return refuse("computes with the size of the batch");
  return *rows;
}

/// MatMulNBits: x [..., k] with packed weights.
Outcome BatchRule::rows_of_table() const {
  SERIN_CHECK(rest_is_same(1));
  if (!state(0).is_rows()) return refuse("computes with the size of the batch");
  if (state(0).axis + 1 == static_cast<int64_t>(dims(0).size())) return refuse("sums over the batch axis");
  return state(0);
}

/// The batch has one label, which is on every operand with rows, once, and in the result: nothing is summed over it.
Outcome BatchRule::einsum() const {
  std::vector<size_t> ranks;
  ranks.reserve(node_.inputs.size());
  for (size_t i = 0; i < node_.inputs.size(); ++i) ranks.push_back(dims(i).size());
  SERIN_TRY(const Einsum equation, parse_einsum(node_.text("equation", ""), ranks));
  char label = 0;
  Dim block = 1;
  for (size_t i = 0; i < node_.inputs.size(); ++i) {
    if (state(i).is_size()) return refuse("computes with the size of the batch");
    if (!state(i).is_rows()) continue;
    const char own = equation.operands[i][static_cast<size_t>(state(i).axis)];
    if (label != 0 && (own != label || !(state(i).block == block))) return refuse("brings different axes of the batch together");
    label = own;
    block = state(i).block;
  }
  for (size_t i = 0; i < node_.inputs.size(); ++i) {
    const auto times = std::ranges::count(equation.operands[i], label);
    if (times != (state(i).is_rows() ? 1 : 0)) return refuse(fmt::format("operand {} has the batch elsewhere", i));
  }
  const size_t axis = equation.result.find(label);
  if (axis == std::string::npos) return refuse("sums over the batch axis");
  return State::rows(static_cast<int64_t>(axis), block);
}

/// Softmax, TopK, CumSum, DFT, LayerNormalization work along one axis, or along all from it on.
Outcome BatchRule::along_axis() const {
  SERIN_CHECK(rest_is_same(1));
  if (!state(0).is_rows()) return state(0);
  const auto rank = static_cast<int64_t>(dims(0).size());
  int64_t axis = node_.op == Op::kDFT ? rank - 2 : axis_attribute(-1, dims(0).size());
  const size_t operand = node_.op == Op::kCumSum ? 1 : 2;  // that has the axis
  if ((node_.op == Op::kCumSum || node_.op == Op::kDFT) && node_.inputs.size() > operand && node_.inputs[operand] != kNone) {
    const auto& known = values_[static_cast<size_t>(node_.inputs[operand])];
    if (!known || known->size() != 1 || !known->front().known()) return refuse("works along an axis that is not known");
    axis = *known->front().value();
    if (axis < 0) axis += rank;
  }
  const bool to_the_end = node_.op == Op::kLayerNormalization || node_.op == Op::kRMSNormalization;
  const bool hit = to_the_end ? state(0).axis >= axis : state(0).axis == axis;
  return hit ? Outcome(refuse("works along the batch axis")) : Outcome(state(0));
}

Outcome BatchRule::reduce() const {
  SERIN_CHECK(rest_is_same(1));
  const bool arg = node_.op == Op::kArgMax || node_.op == Op::kArgMin;
  const auto rank = static_cast<int64_t>(dims(0).size());
  std::vector<int64_t> axes = arg ? std::vector<int64_t>{node_.integer("axis", 0)} : node_.integers("axes");
  if (!arg && node_.inputs.size() > 1 && node_.inputs[1] != kNone) {
    const auto& known = values_[static_cast<size_t>(node_.inputs[1])];
    if (!known) return refuse("reduces axes that are not known");
    for (const Dim& axis : *known) axes.push_back(axis.value().value_or(0));
  }
  if (state(0).is_size()) return state(0);
  if (axes.empty()) return node_.integer("noop_with_empty_axes", 0) != 0 ? Outcome(state(0)) : Outcome(refuse("reduces the batch axis"));
  int64_t before = 0;
  for (const int64_t given : axes) {
    const int64_t axis = given < 0 ? given + rank : given;
    if (axis == state(0).axis) return refuse("reduces the batch axis");
    before += axis < state(0).axis;
  }
  return State::rows(state(0).axis - (node_.integer("keepdims", 1) != 0 ? 0 : before), state(0).block);
}

}  // namespace serin::graph
