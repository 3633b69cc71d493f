// matrix_operators.cc: products of matrices and sums of products.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/formats/tensorflow/einsum.h"
#include "runtime/formats/tensorflow/operators.h"

namespace serin::formats::tf {

using graph::Op;

namespace {

ValueId swapped(NodeImport& n, size_t i, bool swap) {
  const ValueId id = n.in(i);
  const auto rank = n.builder().rank(id);
  if (!swap || !rank || *rank < 2) return id;
  std::vector<int64_t> order(*rank);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::swap(order[*rank - 1], order[*rank - 2]);
  return n.scope().permuted(id, order);
}

void import_matmul(NodeImport& n, Op op) {
  const bool batched = n.def().op != "MatMul";
  const ValueId a = swapped(n, 0, n.flag(batched ? "adj_x" : "transpose_a"));
  const ValueId b = swapped(n, 1, n.flag(batched ? "adj_y" : "transpose_b"));
  n.out(n.builder().add(op, {a, b}));
}

void import_einsum(NodeImport& n, Op op) {
  std::vector<ValueId> operands;
  operands.reserve(n.inputs());
  for (size_t i = 0; i < n.inputs(); ++i) operands.push_back(n.in(i));
  if (operands.size() == 2 && einsum_as_product(n, operands[0], operands[1], n.text("equation"))) return;
  n.out(n.builder().add(op, std::move(operands), {{"equation", std::string(n.text("equation"))}}));
}

/// Sums of the squares of all elements, halved.
void import_l2_loss(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  const ValueId x = n.any(0);
  const ValueId sum = b.add(Op::kReduceSum, {b.add(Op::kMul, {x, x})}, {{"keepdims", int64_t{0}}});
  n.out(b.add(Op::kMul, {sum, b.number(n.dtype(0), 0.5)}));
}

constexpr OperatorRow kMatrix[] = {
    {"BatchMatMul", 2, 2, import_matmul, Op::kMatMul},
    {"BatchMatMulV2", 2, 2, import_matmul, Op::kMatMul},
    {"BatchMatMulV3", 2, 2, import_matmul, Op::kMatMul},
    {"Einsum", 1, -1, import_einsum, Op::kEinsum},
    {"L2Loss", 1, 1, import_l2_loss},
    {"MatMul", 2, 2, import_matmul, Op::kMatMul},
};

}  // namespace

std::span<const OperatorRow> matrix_operators() { return kMatrix; }

}  // namespace serin::formats::tf
