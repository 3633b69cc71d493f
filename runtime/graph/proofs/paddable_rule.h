// paddable_rule.h: declares the padding rules of all nodes, which several files define by family.
//
// The rows of ops/*.def map operators to rules.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "runtime/graph/proofs/paddable_state.h"

namespace serin::graph {

class PadRule {
 public:
  /// `masks` receives the inputs that the rule relies on.
  PadRule(const PadFacts& facts, const Node& node, PaddedInputs& masks)
      : facts_(facts),
        graph_(facts.graph),
        node_(node),
        states_(facts.states),
        values_(facts.values),
        symbol_(facts.symbol),
        masks_(masks) {}

  /// Returns the state of the results of a node whose operands are not all kSame. Errors contain the reason only: "divides by the length".
  Result<PadState> run();

 private:
  using Outcome = Result<PadState>;
  /// The rule that a row of ops/*.def names.
  struct Rule {
    Outcome (*apply)(PadRule&);
    bool shapes = false;  ///< operands that are sizes shape the result
    bool finite = false;  ///< one element at a time, and finite operands give a finite result
  };
  struct Rules;

  // ---- paddable_rules.cc: sizes, and one element at a time
  Outcome unknown() const { return refuse("is not known to keep the padding apart"); }
  Outcome size_of() const { return PadState::size(); }
  Outcome range() const;
  Outcome of_sizes() const;
  Outcome elementwise() const;
  Tail part(size_t operand, size_t axis) const;
  Tail chosen_part(size_t operand, size_t axis) const;

  // ---- paddable_movement.cc
  Outcome expand() const;
  Outcome reshape() const;
  Outcome transpose() const;
  Outcome gather() const;
  Outcome gather_elements() const;
  Outcome slice() const;
  bool turns_around() const;
  Outcome other_axis() const;
  Status finds_row(size_t index, const Dim& rows) const;

  // ---- paddable_sums.cc
  Outcome product() const;
  Outcome attention();
  Outcome softmax();
  Outcome normalise() const;
  Outcome cumulate() const;
  Outcome reduce() const;
  Status rely_on(const Counted& counted);

  // ---- shared helpers
  template <class... Args>
  static Error refuse(fmt::format_string<Args...> format, Args&&... args) {
    return {Code::kFailedPrecondition, fmt::format(format, std::forward<Args>(args)...)};
  }
  const PadState& state(size_t operand) const {
    static const PadState same;
    const ValueId id = operand < node_.inputs.size() ? node_.inputs[operand] : kNone;
    return id == kNone ? same : states_[static_cast<size_t>(id)];
  }
  const Dims& dims(size_t operand) const { return *graph_.value(node_.inputs[operand]).type.shape; }
  const Dims& result_dims() const { return *graph_.value(node_.outputs[0]).type.shape; }
  static size_t axis_of(int64_t axis, size_t rank) { return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis); }
  bool rest_is_same(size_t first) const;
  /// For a value with state kSame: whether all of its elements are tame, in every type.
  bool is_tame_table(ValueId id) const;
  /// Whether the operand is tame along all axes.
  bool tame(size_t operand) const;
  PadState all_along(const Tail& tail) const;

  const PadFacts& facts_;
  const Graph& graph_;
  const Node& node_;
  const std::vector<PadState>& states_;
  const ShapeValues& values_;
  const std::string& symbol_;
  PaddedInputs& masks_;
};

}  // namespace serin::graph
