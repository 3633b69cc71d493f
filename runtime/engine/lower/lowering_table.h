// lowering_table.h: which function lowers which operator, and how a graph's value becomes a tensor. Shared by lower() and Folder.
#pragma once

#include "runtime/engine/lower/lowering.h"
#include "runtime/engine/program/bounds.h"

namespace serin::engine {

/// Null where an operator has no kernels: it is folded (Shape, Range ...), a step of its own (If) or refused (Loop). What has no row in the table
/// goes to the backend by name.
LowerFn lower_fn(graph::Op op);

/// kUnsupported for sequences, optionals, strings and sizes without a bound, naming the value.
Result<Tensor> tensor_of(const graph::Graph& graph, graph::ValueId id, Bounds& bounds);

}  // namespace serin::engine
