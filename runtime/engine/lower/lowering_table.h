// lowering_table.h: maps operators to the functions that lower them, and a graph's values to tensors. lower() and Folder share it.
#pragma once

#include "runtime/engine/lower/lowering.h"
#include "runtime/engine/program/bounds.h"

namespace serin::engine {

/// Null if an operator has no kernels: it is folded (Shape, Range ...), a step of its own (If) or refused (Loop). Operators without a row
/// in the table go to the backend by name.
LowerFn lower_fn(graph::Op op);

/// kUnsupported for sequences, optionals, strings and sizes without a bound, naming the value.
Result<Tensor> tensor_of(const graph::Graph& graph, graph::ValueId id, Bounds& bounds);

}  // namespace serin::engine
