// batchable.h: the state that prove_batchable tracks for a value, and the rule of a node.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/ops/infer.h"

namespace serin::graph {

/// batchable.cc explains the states.
struct BatchState {
  enum class Kind { kSame, kSize, kRows } kind = Kind::kSame;
  int64_t axis = 0;
  Dim block = 1;
  /// Set: rows of texts, filled up with this one until they are as long as the longest row of the batch.
  std::optional<std::string> filler = std::nullopt;

  static BatchState rows(int64_t axis, Dim block) { return {Kind::kRows, axis, std::move(block), std::nullopt}; }
  bool is_same() const { return kind == Kind::kSame; }
  bool is_rows() const { return kind == Kind::kRows; }
  bool is_size() const { return kind == Kind::kSize; }
  bool is_filled_up() const { return filler.has_value(); }
};

struct BatchFacts {
  const Graph& graph;
  const std::vector<BatchState>& states;  ///< states by value
  const ShapeValues& values;
  const std::string& symbol;
};

/// Returns the state of a result of a node whose operands are not all kSame. Errors contain the reason only: "reduces the batch axis".
Result<BatchState> batch_rule(const BatchFacts& facts, const Node& node, size_t result);

/// Whether the batch symbol occurs in these sizes.
bool mentions(const Dims& dims, const std::string& symbol);
bool mentions(const Dim& dim, const std::string& symbol);

}  // namespace serin::graph
