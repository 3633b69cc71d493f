// match.h: small queries for matching patterns in a graph.
#pragma once

#include <cmath>
#include <optional>
#include <utility>

#include "runtime/graph/graph.h"

namespace serin::graph {

/// Returns the node that computes `value`, if it is an `op` and its result has no other reader; otherwise kNone.
inline NodeId only_producer(const Graph& graph, ValueId value, Op op) {
  const NodeId id = graph.producer(value);
  return graph.is(id, op) && graph.reader_count(value) == 1 ? id : kNone;
}

/// Returns the only node that reads `value`, if it is not an output of the graph; otherwise kNone.
inline NodeId only_reader(const Graph& graph, ValueId value) {
  if (graph.is_output(value) || graph.reader_count(value) != 1) return kNone;
  return graph.readers(value).front();
}

/// Returns the number that all elements of a value are known to be.
inline std::optional<double> known_number(const Graph& graph, ValueId value) {
  const ConstantPtr constant = graph.constant(value);
  return constant ? number_of(*constant) : std::nullopt;
}

/// Rounds a number to a significand of `bits` bits: 11 for an f16, 8 for a bf16.
inline double rounded_to(int bits, double number) {
  int exponent = 0;
  const double fraction = std::frexp(number, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
}

/// Whether a value is this number, as stored in f32 or in a model of 16-bit floats.
inline bool is_number(const Graph& graph, ValueId value, double expected, double tolerance = 1e-4) {
  const auto number = known_number(graph, value);
  if (!number) return false;
  return std::abs(*number - expected) <= tolerance * std::abs(expected) || *number == rounded_to(11, expected) ||
         *number == rounded_to(8, expected);
}

/// For x + 0 and 0 + x: x; kNone for other nodes.
inline ValueId added_to_zero(const Graph& graph, NodeId id) {
  if (!graph.is(id, Op::kAdd)) return kNone;
  if (is_number(graph, graph.input(id, 0), 0)) return graph.input(id, 1);
  return is_number(graph, graph.input(id, 1), 0) ? graph.input(id, 0) : kNone;
}

/// For a node of two operands: the one that is not `value`; kNone if neither is `value`.
inline ValueId other_operand(const Graph& graph, NodeId id, ValueId value) {
  if (graph.input(id, 0) == value) return graph.input(id, 1);
  return graph.input(id, 1) == value ? graph.input(id, 0) : kNone;
}

inline const Dims* dims_of_value(const Graph& graph, ValueId value) {
  const auto& shape = graph.value(value).type.shape;
  return shape ? &*shape : nullptr;
}

/// Whether b is one number for each channel of each image of a: [n, c, 1, 1] and [n, c, h, w].
inline bool is_factor_of_channels(const Dims& a, const Dims& b) {
  return a.size() == 4 && b.size() == 4 && a[0] == b[0] && a[1] == b[1] && b[2] == Dim(1) && b[3] == Dim(1);
}

/// Whether they are proven equal for every value of the symbols.
inline bool same_type(const Graph& graph, ValueId a, ValueId b) {
  const Type &x = graph.value(a).type, &y = graph.value(b).type;
  return x.kind == y.kind && x.dtype == y.dtype && x.shape && y.shape && *x.shape == *y.shape;
}

/// `value` times a number: the rest of it, and the number; `value` and 1 where it is no such product.
inline std::pair<ValueId, double> unscaled(const Graph& graph, ValueId value) {
  const NodeId id = graph.producer(value);
  if (graph.is(id, Op::kDiv)) {
    const auto divisor = known_number(graph, graph.input(id, 1));
    if (divisor && *divisor != 0 && same_type(graph, value, graph.input(id, 0))) return {graph.input(id, 0), 1 / *divisor};
  }
  if (graph.is(id, Op::kMul)) {
    for (const size_t i : {0, 1}) {
      const auto factor = known_number(graph, graph.input(id, i));
      if (factor && same_type(graph, value, graph.input(id, 1 - i))) return {graph.input(id, 1 - i), *factor};
    }
  }
  return {value, 1.0};
}

}  // namespace serin::graph
