// batchable_rule.h: declares the batch rules of all nodes, which several files define by family.
//
// The rows of ops/*.def map operators to rules.
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

  // The rules that ops/*.def name, by the file that defines them, and their parts.

  Outcome unknown() const { return refuse("is not known to keep the items of a batch apart"); }
  Outcome whole_batch() const { return refuse("depends on the whole batch"); }
  Outcome one_scale() const { return refuse("quantises the whole batch with one scale"); }
  Outcome counts_places() const { return refuse("counts places from the first item of the batch"); }
  Outcome size_of() const { return BatchState{BatchState::Kind::kSize, 0, 1, std::nullopt}; }

  // ---- batchable_rules.cc: one element at a time, or one row
  Outcome elementwise() const;
  Outcome elementwise_of(std::span<const size_t> operands) const;
  Outcome with_parameters() const;
  Outcome quantised_binary() const;
  Outcome table() const;

  // ---- batchable_texts.cc
  Outcome examples() const;
  Outcome cut_texts() const;
  Outcome count_grams() const;
  Outcome normalised_texts() const;

  // ---- batchable_movement.cc
  Outcome expand() const;
  Outcome reshape() const;
  Outcome concat() const;
  Outcome gather() const;
  Outcome gather_elements() const;
  Outcome gather_nd() const;
  Outcome listed() const;
  Outcome listed_or_ends() const { return state(1).is_rows() ? listed() : rows_before_the_end(); }
  Outcome rows_before_the_end() const;
  Outcome transpose() const;
  Outcome keeps_batch_whole() const;
  Outcome cut() const { return !state(0).is_rows() && state(1).is_size() ? expand() : keeps_batch_whole(); }
  bool pads_leave(size_t axis) const;

  // ---- batchable_sums.cc
  Outcome product() const { return product_of(0, 1, 2); }
  Outcome scaled_product() const { return product_of(0, 3, 6); }
  Outcome dynamic_product() const { return node_.integer("by_row", 0) != 0 ? product_of(0, 1, 4) : one_scale(); }
  Outcome product_of(size_t a, size_t b, size_t last) const;
  Outcome rows_of_table() const;
  Outcome einsum() const;
  Outcome along_axis() const;
  Outcome reduce() const;

  // ---- batchable_layers.cc
  Outcome per_item() const;
  Outcome detections() const;
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

  const Graph& graph_;
  const Node& node_;
  const std::vector<BatchState>& states_;
  const ShapeValues& values_;
  const std::string& symbol_;
  const size_t result_;
};

}  // namespace serin::graph
