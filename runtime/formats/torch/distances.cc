// distances.cc: distances and similarities of vectors, which lie along one axis.

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {
namespace {

using graph::Op;
using graph::ValueId;

ValueId along(NodeImport& node, Op op, ValueId x, int64_t axis, bool keep) {
  return node.b.add(op, {x}, {{"axes", std::vector<int64_t>{axis}}, {"keepdims", int64_t{keep}}});
}

/// The norm of order p along an axis.
ValueId length(NodeImport& node, ValueId x, double order, int64_t axis, bool keep) {
  if (order == 2) return along(node, Op::kReduceL2, x, axis, keep);
  if (order == 1) return along(node, Op::kReduceL1, x, axis, keep);
  const ValueId size = node.b.add(Op::kAbs, {x});
  if (std::isinf(order) && order > 0) return along(node, Op::kReduceMax, size, axis, keep);
  const DType dtype = node.b.dtype(x);
  if (order <= 0) node.unsupported(fmt::format("a distance of order {}", order));
  const ValueId sum = along(node, Op::kReduceSum, node.b.add(Op::kPow, {size, node.b.number(dtype, order)}), axis, keep);
  return node.b.add(Op::kPow, {sum, node.b.number(dtype, 1 / order)});
}

/// a b / (|a| |b|), each length at least eps.
void import_cosine_similarity(NodeImport& node, Op) {
  const DType dtype = node.result_dtype();
  const ValueId a = node.b.cast(node.tensor("x1"), dtype), b = node.b.cast(node.tensor("x2"), dtype);
  const size_t rank = std::max(node.rank(a), node.rank(b));
  const int64_t axis = node.axis(node.integer("dim", 1), rank) - static_cast<int64_t>(rank);
  const ValueId least = node.b.number(dtype, node.number("eps", 1e-8));
  const auto unit = [&](ValueId x) { return node.b.add(Op::kDiv, {x, node.b.add(Op::kMax, {length(node, x, 2, axis, true), least})}); };
  node.give(along(node, Op::kReduceSum, node.b.add(Op::kMul, {unit(a), unit(b)}), axis, false));
}

/// |a - b + eps| along the last axis.
void import_pairwise_distance(NodeImport& node, Op) {
  const DType dtype = node.result_dtype();
  const ValueId difference = node.b.add(Op::kSub, {node.b.cast(node.tensor("x1"), dtype), node.b.cast(node.tensor("x2"), dtype)});
  const ValueId moved = node.b.add(Op::kAdd, {difference, node.b.number(dtype, node.number("eps", 1e-6))});
  node.give(length(node, moved, node.number("p", 2), -1, node.flag("keepdim", false)));
}

/// |a|^2 + |b|^2 - 2 a b, which is a product of matrices; rounding can make it negative.
ValueId squares_by_product(NodeImport& node, ValueId a, ValueId b) {
  const auto squares = [&](ValueId x) { return along(node, Op::kReduceSum, node.b.add(Op::kMul, {x, x}), -1, true); };
  std::vector<int64_t> order = order_of(node.rank(b));
  std::swap(order[order.size() - 2], order[order.size() - 1]);
  const DType dtype = node.b.dtype(a);
  const ValueId products = node.b.add(Op::kMul, {node.b.add(Op::kMatMul, {a, node.b.transpose(b, order)}), node.b.number(dtype, -2)});
  const ValueId sums = node.b.add(Op::kAdd, {squares(a), node.b.transpose(squares(b), order)});
  return node.b.add(Op::kMax, {node.b.add(Op::kAdd, {sums, products}), node.b.number(dtype, 0)});
}

/// The distance of each row of x1 from each row of x2. As torch does, those of many rows in the Euclidean norm come from a product.
void import_cdist(NodeImport& node, Op) {
  const ValueId a = node.tensor("x1"), b = node.tensor("x2");
  const size_t left = node.rank(a), right = node.rank(b);
  if (left < 2 || right < 2) return node.corrupt(fmt::format("rows of ranks {} and {}", left, right));
  const double order = node.number("p", 2);
  constexpr int64_t kFew = 25;
  const auto few = [&](ValueId x, size_t rank) { return node.b.size(x, rank - 2).value_or(std::numeric_limits<int64_t>::max()) <= kFew; };
  const int64_t mode = node.integer("compute_mode", 0);
  if (order == 2 && mode != 2 && (mode == 1 || !few(a, left) || !few(b, right)))
    return node.give(node.b.add(Op::kSqrt, {squares_by_product(node, a, b)}));
  node.give(length(node, node.b.add(Op::kSub, {node.b.unsqueeze(a, {-2}), node.b.unsqueeze(b, {-3})}), order, -1, false));
}

/// The product that is a right angle to both: of vectors of 3 along an axis.
void import_cross(NodeImport& node, Op) {
  const DType dtype = node.result_dtype();
  const ValueId a = node.b.cast(node.tensor("self"), dtype), b = node.b.cast(node.tensor("other"), dtype);
  const size_t rank = std::max(node.rank(a), node.rank(b));
  int64_t axis = 0;
  if (node.has("dim") || node.node().target.find("linalg") != std::string::npos) {
    axis = node.axis(node.integer("dim", -1), rank);
  } else {
    while (static_cast<size_t>(axis) < rank && node.b.size(a, static_cast<size_t>(axis)) != 3) ++axis;
    if (static_cast<size_t>(axis) == rank) return node.unsupported("vectors along an axis that is not known");
  }
  axis -= static_cast<int64_t>(rank);
  const auto turned = [&](ValueId x, const std::vector<int64_t>& order) {
    return node.b.add(Op::kGather, {x, node.b.integers(order)}, {{"axis", axis}});
  };
  const ValueId first = node.b.add(Op::kMul, {turned(a, {1, 2, 0}), turned(b, {2, 0, 1})});
  node.give(node.b.add(Op::kSub, {first, node.b.add(Op::kMul, {turned(a, {2, 0, 1}), turned(b, {1, 2, 0})})}));
}

constexpr OperatorRow kDistances[] = {
    {"aten._cdist_forward", import_cdist}, {"aten.cdist", import_cdist},        {"aten.cosine_similarity", import_cosine_similarity},
    {"aten.cross", import_cross},          {"aten.linalg_cross", import_cross}, {"aten.pairwise_distance", import_pairwise_distance},
};

}  // namespace

std::span<const OperatorRow> distance_operators() { return kDistances; }

}  // namespace serin::formats::torch
