// units.h: what kinds of nodes compute on bytes, and which of their operands and results those are. Shared by choose.cc and insert.cc.
#pragma once

#include <optional>
#include <vector>

#include "runtime/graph/graph.h"

namespace serin::graph::int8 {

enum class UnitKind : uint8_t {
  kConv,
  kProduct,   ///< MatMul, Gemm: its result is f32
  kBinary,    ///< Add, Mul of two tensors
  kPool,      ///< GlobalAveragePool
  kFunction,  ///< of single elements
  kConcat,
  kMover,  ///< bytes go where they went before, or are picked: what comes out has the scale of what comes in
};
/// Nothing for operators that have no form on bytes.
std::optional<UnitKind> kind_of(const Graph& graph, NodeId id);

/// Operands that are bytes in a unit, by position.
std::vector<size_t> byte_operands(const Graph& graph, NodeId id);
/// What a unit makes: behind its Relu, where that is done in the same step. None for products.
std::vector<ValueId> byte_results(const Graph& graph, NodeId id);

}  // namespace serin::graph::int8
