// batchable_rule.h: declares the batch rules of all nodes, which several files define by family.
//
// batchable_rules.cc maps operators to rules.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/proofs/batchable.h"

namespace serin::graph {

class BatchRule {
 public:
  /// `result` is the index of the result.
  BatchRule(const BatchFacts& facts, const Node& node, size_t result)
      : graph_(facts.graph), node_(node), states_(facts.states), values_(facts.values), symbol_(facts.symbol), result_(result) {}

  Result<BatchState> run() const;

 private:
  using Outcome = Result<BatchState>;

  // ---- batchable_rules.cc: one element at a time, or one row
  Outcome elementwise(std::span<const size_t> operands) const;
  Outcome elements_with_parameters() const;
  Outcome quantised_binary() const;
  Outcome table() const;

  // ---- batchable_movement.cc
  Outcome expand() const;
  Outcome reshape() const;
  Outcome concat() const;
  Outcome gather() const;
  Outcome gather_elements() const;
  Outcome gather_nd() const;
  Outcome listed() const;
  Outcome rows_before_the_end() const;
  Outcome transpose() const;
  Outcome keeps_batch_whole() const;
  bool pads_leave(size_t axis) const;

  // ---- batchable_sums.cc
  Outcome product(size_t a, size_t b, size_t last) const;
  Outcome rows_of_table() const;
  Outcome einsum() const;
  Outcome along_axis() const;
  Outcome reduce() const;

  // ---- batchable_layers.cc
  Outcome per_item() const;
  Outcome signal() const;
  Outcome attention() const;
  Outcome rotary() const;
  Outcome image() const;
  Outcome resize() const;
  Outcome recurrent() const;
  bool first_axis(size_t i) const;
  bool tells_items_apart(size_t i, size_t rank) const;

  // ---- shared helpers
  static Error refuse(std::string why) { return {Code::kFailedPrecondition, std::move(why)}; }
  static BatchState size() { return {BatchState::Kind::kSize, 0, 1}; }
  const BatchState& state(size_t operand) const {
    static const BatchState same;
    const ValueId id = operand < node_.inputs.size() ? node_.inputs[operand] : kNone;
    return id == kNone ? same : states_[static_cast<size_t>(id)];
  }
  const Dims& dims(size_t operand) const { return *graph_.value(node_.inputs[operand]).type.shape; }
  const Dims& result_dims() const { return *graph_.value(node_.outputs[result_]).type.shape; }
  int64_t axis_attribute(int64_t fallback, size_t rank) const {
    const int64_t axis = node_.integer("axis", fallback);
    return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
  }
  /// Operands from `first` on must not depend on the batch.
  Status rest_is_same(size_t first) const;
  std::vector<size_t> all_operands() const;

  const Graph& graph_;
  const Node& node_;
  const std::vector<BatchState>& states_;
  const ShapeValues& values_;
  const std::string& symbol_;
  const size_t result_;
};

}  // namespace serin::graph
