// diagonals.cc: diagonals of matrices, places of a triangle, and places in sorted numbers.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::kNone;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

/// All axes but two, and then these.
List order_with_last(NodeImport& node, size_t rank, int64_t first, int64_t second) {
  List order;
  for (const int64_t axis : order_of(rank))
    if (axis != first && axis != second) order.push_back(axis);
  if (order.size() + 2 != rank) node.corrupt("a diagonal of one axis");
  order.push_back(first);
  order.push_back(second);
  return order;
}

constexpr int64_t kFarthest = int64_t{1} << 40;  // beyond all matrices

/// The elements [.., i, i + offset] on a new last axis. They are every (columns + 1)-th of a flat matrix.
ValueId diagonal(NodeImport& node, ValueId x, int64_t offset, int64_t first, int64_t second) {
  offset = std::clamp(offset, -kFarthest, kFarthest);
  const size_t rank = node.rank(x);
  if (rank < 2) return node.corrupt(fmt::format("a matrix of rank {}", rank)), x;
  const List order = order_with_last(node, rank, node.axis(first, rank), node.axis(second, rank));
  if (node.b.error()) return x;
  const ValueId matrix = node.b.transpose(x, order);
  const ValueId rows = node.sized(matrix, rank - 2), columns = node.sized(matrix, rank - 1);
  const ValueId below = node.scalar({std::max<int64_t>(0, -offset)}), right = node.scalar({std::max<int64_t>(0, offset)});
  const ValueId length = node.b.add(
      Op::kMax, {node.b.add(Op::kMin, {node.b.add(Op::kSub, {rows, below}), node.b.add(Op::kSub, {columns, right})}), node.scalar({0})});
  const ValueId step = node.b.add(Op::kAdd, {columns, node.scalar({1})});
  const ValueId begin = node.b.add(Op::kAdd, {node.b.add(Op::kMul, {below, columns}), right});
  const ValueId places =
      node.b.add(Op::kAdd, {begin, node.b.add(Op::kMul, {node.b.add(Op::kRange, {node.scalar({0}), length, node.scalar({1})}), step})});
  std::vector<Size> flat = sizes_of(node, matrix, 0, rank - 2);
  flat.push_back({-1, kNone});
  const ValueId elements = node.b.add(Op::kReshape, {matrix, node.shape_of(flat)});
  return node.b.add(Op::kGather, {elements, places}, {{"axis", static_cast<int64_t>(rank) - 2}});
}

void import_diagonal(NodeImport& node, Op) {
  const bool matrix = node.node().target.find("linalg") != std::string::npos;
  const ValueId x = node.tensor(node.has("A") ? "A" : "self");
  node.give(diagonal(node, x, node.integer("offset", 0), node.integer("dim1", matrix ? -2 : 0), node.integer("dim2", matrix ? -1 : 1)));
}

/// A matrix for each vector on the last axis, which has it on the diagonal that is `offset` to the right of the main one.
ValueId embedded(NodeImport& node, ValueId x, int64_t offset) {
  offset = std::clamp(offset, -kFarthest, kFarthest);
  const size_t rank = node.rank(x);
  if (rank == 0) return node.corrupt("a vector of rank 0"), x;
  List pads(2 * rank, 0);
  pads[offset > 0 ? rank - 1 : 2 * rank - 1] = std::abs(offset);
  if (offset != 0) x = node.b.add(Op::kPad, {x}, {{"mode", std::string("constant")}, {"pads", pads}});
  // Now element j of the vector belongs to column j. Below the main diagonal, the zeros at the end have no row.
  const ValueId columns = node.b.add(Op::kRange, {node.scalar({0}), node.sized(x, rank - 1), node.scalar({1})});
  const ValueId here = node.b.add(Op::kEqual, {node.b.add(Op::kAdd, {node.b.unsqueeze(columns, {1}), node.scalar({offset})}), columns});
  return node.b.add(Op::kWhere, {here, node.b.unsqueeze(x, {-2}), node.b.number(node.b.dtype(x), 0)});
}

void import_diag_embed(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const size_t rank = node.rank(x) + 1;
  const int64_t first = node.axis(node.integer("dim1", -2), rank), second = node.axis(node.integer("dim2", -1), rank);
  const ValueId y = embedded(node, x, node.integer("offset", 0));
  const List last = order_with_last(node, rank, first, second);
  if (node.b.error()) return;
  node.give(std::ranges::is_sorted(last) ? y : node.b.transpose(y, inverse_order(last)));
}

/// The diagonal of a matrix, or the matrix of a diagonal.
void import_diag(NodeImport& node, Op) {
  const ValueId x = node.tensor("self");
  const int64_t offset = node.integer("diagonal", 0);
  node.give(node.rank(x) == 1 ? embedded(node, x, offset) : diagonal(node, x, offset, 0, 1));
}

void import_trace(NodeImport& node, Op op) {
  const ValueId elements = diagonal(node, node.tensor("self"), 0, 0, 1);
  node.give(node.b.add(op, {node.b.cast(elements, node.result_dtype())}, {{"axes", List{0}}, {"keepdims", int64_t{0}}}));
}

/// Rows and columns of the lower or upper triangle of a matrix whose sizes are known.
void import_triangle_indices(NodeImport& node, Op) {
  const int64_t rows = node.integer("row", 0), columns = node.integer("col", 0), offset = node.integer("offset", 0);
  constexpr int64_t kMost = 1 << 20;
  if (rows < 0 || columns < 0 || rows > kMost || columns > kMost || rows * columns > kMost)
    return node.unsupported(fmt::format("a matrix of {} x {}", rows, columns));
  const bool upper = node.node().target.find("triu") != std::string::npos;
  List first, second;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (upper ? j - i >= offset : j - i <= offset) {
        first.push_back(i);
        second.push_back(j);
      }
  const auto count = static_cast<int64_t>(first.size());
  first.insert(first.end(), second.begin(), second.end());
  node.give(node.b.cast(node.b.constant(graph::make_constant(DType::kInt64, Shape{2, count}, first.data())), node.result_dtype()));
}

/// bucketize, searchsorted: how many of the sorted boundaries are below an element; with `right`, not above it.
void import_search(NodeImport& node, Op) {
  const bool buckets = node.node().target.find("bucketize") != std::string::npos;
  const char* const sorted = buckets ? "boundaries" : "sorted_sequence";
  const ValueId boundaries = node.tensor(sorted);
  if (node.has("sorter")) return node.unsupported("boundaries that are sorted by indices");
  if (!buckets && node.rank(boundaries) != 1 && !node.is_tensor("self")) return node.unsupported("a number in rows of boundaries");
  const DType dtype = promoted(node, "self", sorted);
  const ValueId x = node.b.unsqueeze(node.operand("self", dtype), {-1});
  const ValueId limits =
      node.rank(boundaries) == 1 ? node.b.cast(boundaries, dtype) : node.b.unsqueeze(node.b.cast(boundaries, dtype), {-2});
  const bool right = node.flag("right", false) || node.text("side", "left") == "right";
  const ValueId below = node.b.add(right ? Op::kLessOrEqual : Op::kLess, {limits, x});
  const ValueId count = node.b.add(Op::kReduceSum, {node.b.cast(below, DType::kInt64)}, {{"axes", List{-1}}, {"keepdims", int64_t{0}}});
  node.give(node.b.cast(count, node.result_dtype()));
}

constexpr OperatorRow kDiagonals[] = {
    {"aten.bucketize", import_search},
    {"aten.diag", import_diag},
    {"aten.diag_embed", import_diag_embed},
    {"aten.diagonal", import_diagonal, Op::kGather, Alias::kView},
    {"aten.linalg_diagonal", import_diagonal, Op::kGather, Alias::kView},
    {"aten.searchsorted", import_search},
    {"aten.trace", import_trace, Op::kReduceSum},
    {"aten.tril_indices", import_triangle_indices},
    {"aten.triu_indices", import_triangle_indices},
};

}  // namespace

std::span<const OperatorRow> diagonal_operators() { return kDiagonals; }

}  // namespace serin::formats::torch
