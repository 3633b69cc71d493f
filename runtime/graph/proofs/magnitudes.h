// magnitudes.h: bounds how large the elements of a value can be for any inputs.
//
//   Magnitudes magnitudes(graph);                             // shapes are inferred
//   const double most = magnitudes.of(scores);                // of any element
//   const double head = magnitudes.of(q, {.axis = 3, .length = 32});   // 2-norm of 32 neighbours
//
// A bound applies to every element that is a number; it says nothing about NaN.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <tuple>

#include "runtime/graph/graph.h"
#include "runtime/graph/proofs/piece.h"

namespace serin::graph {

class Magnitudes {
 public:
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();

  explicit Magnitudes(const Graph& graph) : graph_(graph) {}
  /// Upper bound for the 2-norm of every such piece of the value; kUnknown if no bound is found. Throws LostConstant.
  double of(ValueId id, Piece piece = {});

 private:
  const Graph& graph_;
  std::map<std::tuple<ValueId, size_t, int64_t>, double> known_;
  int depth_ = 0;
};

}  // namespace serin::graph
