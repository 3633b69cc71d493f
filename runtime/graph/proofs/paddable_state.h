// paddable_state.h: the state that prove_paddable tracks for a value; paddable.cc explains it.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/ops/infer.h"
#include "runtime/graph/proofs/magnitudes.h"
#include "runtime/graph/proofs/paddable_tail.h"

namespace serin::graph {

/// Bounds for all elements.
struct PadInterval {
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();

  bool is_number() const { return least == most; }
};

struct PadState {
  enum class Kind { kSame, kSize, kAlong } kind = Kind::kSame;
  std::vector<std::pair<size_t, Tail>> axes;  ///< for kAlong, rising
  PadInterval interval{};                     ///< for kAlong and kSame

  static PadState size() { return {Kind::kSize, {}, {}}; }
  static PadState along(std::vector<std::pair<size_t, Tail>> axes) {
    if (axes.empty()) return {};
    return {Kind::kAlong, std::move(axes), {}};
  }
  bool is_same() const { return kind == Kind::kSame; }
  bool is_size() const { return kind == Kind::kSize; }
  bool is_along() const { return kind == Kind::kAlong; }
  const Tail* tail(size_t axis) const {
    for (const auto& [own, tail] : axes)
      if (own == axis) return &tail;
    return nullptr;
  }
};

struct PadFacts {
  const Graph& graph;
  const std::vector<PadState>& states;  ///< states by value
  const ShapeValues& values;
  const std::string& symbol;
  Magnitudes& magnitudes;
};

}  // namespace serin::graph
