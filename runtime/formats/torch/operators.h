// operators.h: the operators of torch that are read, and the functions that import them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/formats/torch/node_import.h"
#include "runtime/graph/op.h"

namespace serin::formats::torch {

/// Whether a result shares its elements with the operand 'self', so that a write into one is a write into the other.
enum class Alias : uint8_t {
  kNone,
  kView,
  kMaybe,  ///< depends on how the elements lie in memory
};

struct OperatorRow {
  std::string_view target;  ///< "aten.relu"; with the overload where one differs: "aten.max.dim"
  void (*import)(NodeImport& node, graph::Op op);
  graph::Op op = graph::Op::kIdentity;  ///< for functions that serve several operators
  Alias alias = Alias::kNone;
};

/// Finds the row of "torch.ops.aten.add.Tensor". Null if the operator is not supported.
const OperatorRow* find_operator(std::string_view target);
/// The same of a node that reads or makes complex numbers.
const OperatorRow* find_complex_operator(std::string_view target);
/// The operator without its write: "torch.ops.aten.relu_.default" gives "torch.ops.aten.relu.default". Empty if it does not write into 'self'.
std::string functional_target(std::string_view target);

// Families, one file each.
std::span<const OperatorRow> elementwise_operators();  // functions of single elements
std::span<const OperatorRow> binary_operators();       // of two tensors, comparisons, choices
std::span<const OperatorRow> reduce_operators();
std::span<const OperatorRow> shape_operators();      // other shapes of the same elements
std::span<const OperatorRow> slice_operators();      // parts of tensors
std::span<const OperatorRow> movement_operators();   // tensors joined, split, repeated, padded
std::span<const OperatorRow> selection_operators();  // indices, sorting
std::span<const OperatorRow> creation_operators();   // new tensors, types
std::span<const OperatorRow> product_operators();    // products and convolutions
std::span<const OperatorRow> pool_operators();
std::span<const OperatorRow> norm_operators();
std::span<const OperatorRow> image_operators();     // resizing and sampling
std::span<const OperatorRow> sequence_operators();  // attention, recurrent networks
std::span<const OperatorRow> distance_operators();  // distances and similarities of vectors
std::span<const OperatorRow> scatter_operators();   // writes and sums at indices, bags
std::span<const OperatorRow> cell_operators();      // one step of a recurrent network
std::span<const OperatorRow> diagonal_operators();  // diagonals, and places in sorted numbers
std::span<const OperatorRow> window_operators();    // windows of images
std::span<const OperatorRow> size_operators();      // sizes and arithmetic on them
std::span<const OperatorRow> program_operators();   // graphs within graphs, assertions
std::span<const OperatorRow> scan_operators();      // what depends on all elements before: cummax, logcumsumexp
std::span<const OperatorRow> order_operators();     // places in order: quantile, mode, histc
std::span<const OperatorRow> fourier_operators();   // transforms, of real and of complex numbers
std::span<const OperatorRow> signal_operators();    // the same of windows of a signal, and window functions
// Of complex numbers only.
std::span<const OperatorRow> complex_operators();       // arithmetic
std::span<const OperatorRow> complex_part_operators();  // what applies to each part, products

// Functions that families share.
/// The type in which torch computes with two operands.
DType promoted(NodeImport& node, std::string_view a, std::string_view b);
/// The angle of the point (x, y).
graph::ValueId angle_of(NodeImport& node, graph::ValueId y, graph::ValueId x);
/// The sizes of the axes begin .. end - 1, as numbers or as the model computes them.
std::vector<Size> sizes_of(NodeImport& node, graph::ValueId x, size_t begin, size_t end);
/// 0, 1 ... rank - 1
std::vector<int64_t> order_of(size_t rank);
/// The order that undoes a transpose by `order`.
std::vector<int64_t> inverse_order(const std::vector<int64_t>& order);
/// x, as large as `shape` (i64 of rank 1) says.
graph::ValueId expanded(NodeImport& node, graph::ValueId x, graph::ValueId shape);
/// `into` with the elements begin, begin + step ... of an axis replaced by those of `value`.
graph::ValueId replaced(NodeImport& node, graph::ValueId into, graph::ValueId value, size_t axis, Size begin, Size end, int64_t step);
/// The operand of a view with `value` in place of what the view shows; kNone, and an error, for a view that cannot be written to.
graph::ValueId written_back(NodeImport& view, graph::ValueId into, graph::ValueId value);

}  // namespace serin::formats::torch
