// units.h: classifies the nodes that compute on bytes, and their byte operands and results. choose.cc and insert.cc share it.
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
  kFunction,  ///< function of single elements
  kConcat,
  kMover,  ///< moves or selects bytes: the result has the scale of the operand
};
/// Returns nothing for operators that have no form on bytes.
std::optional<UnitKind> kind_of(const Graph& graph, NodeId id);

/// Operands that are bytes in a unit, by position.
std::vector<size_t> byte_operands(const Graph& graph, NodeId id);
/// The byte results of a unit, after its Relu if one step computes both. None for products.
std::vector<ValueId> byte_results(const Graph& graph, NodeId id);

}  // namespace serin::graph::int8
