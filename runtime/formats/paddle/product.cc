// product.cc: matrix products.

#include <numeric>

#include "runtime/formats/paddle/operators.h"

namespace serin::formats::paddle {
namespace {

ValueId swapped(Node& node, ValueId x) {
  List order(node.rank(x));
  std::iota(order.begin(), order.end(), 0);
  if (order.size() < 2) return x;
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return node.b.transpose(x, order);
}

void import_matmul(Node& node, Op op) {
  ValueId x = node.in("X"), y = node.in("Y");
  if (node.flag("trans_x|transpose_x|transpose_X")) x = swapped(node, x);
  if (node.flag("trans_y|transpose_y|transpose_Y")) y = swapped(node, y);
  ValueId product = node.binary(op, x, y);
  if (const double alpha = node.number("alpha", 1); alpha != 1) product = node.with_number(Op::kMul, product, alpha);
  node.out("Out", product);
}

/// Axes before `axis` become rows, the others columns.
ValueId rows_of(Node& node, ValueId x, int64_t axis) {
  return node.rank(x) == 2 && axis == 1 ? x : node.unary(Op::kFlatten, x, {{"axis", axis}});
}

/// x w, with the axes of x from `columns` on and the first `rows` of w flattened.
ValueId flat_product(Node& node, ValueId x, ValueId w, int64_t columns, int64_t rows) {
  const size_t rank = node.rank(x), weight_rank = node.rank(w);
  if (columns < 1 || static_cast<size_t>(columns) >= rank || rows < 1 || static_cast<size_t>(rows) >= weight_rank) {
    node.corrupt("axes that the product does not have");
    return x;
  }
  if (static_cast<size_t>(columns) + 1 == rank && weight_rank == 2) return node.binary(Op::kMatMul, x, w);
  const ValueId product = node.binary(Op::kMatMul, rows_of(node, x, columns), rows_of(node, w, rows));
  if (columns == 1 && weight_rank == 2) return product;
  const ValueId sizes = node.concat(
      {node.b.slice(node.shape_of(x), 0, 0, columns), node.b.slice(node.shape_of(w), 0, rows, static_cast<int64_t>(weight_rank))}, 0);
  return node.b.add(Op::kReshape, {product, sizes});
}

void import_mul(Node& node, Op /*op*/) {
  node.out("Out", flat_product(node, node.in("X"), node.in("Y"), node.integer("x_num_col_dims", 1), node.integer("y_num_col_dims", 1)));
}

void import_fc(Node& node, Op /*op*/) {
  ValueId y = flat_product(node, node.in("Input"), node.in("W"), node.integer("in_num_col_dims", 1), 1);
  if (const ValueId bias = node.maybe("Bias"); bias != kNone)
    y = node.binary(Op::kAdd, y, node.b.rank(bias) == size_t{1} ? bias : node.b.reshape(bias, {-1}));
  node.out("Out", activate(node, node.text("activation_type", ""), y));
}

void import_linear(Node& node, Op op) {
  ValueId x = node.in("X"), y = node.in("Y");
  if (node.flag("trans_x")) x = swapped(node, x);
  if (node.flag("trans_y")) y = swapped(node, y);
  const std::string activation = node.text("activation", "none");
  node.out("Out", activate(node, activation == "none" ? "" : activation, node.binary(Op::kAdd, node.binary(op, x, y), node.in("Bias"))));
}

void import_mv(Node& node, Op op) { node.out("Out", node.binary(op, node.in("X"), node.in("Vec"))); }

void import_addmm(Node& node, Op op) {
  ValueId product = node.binary(op, node.in("X"), node.in("Y")), sum = node.in("Input");
  if (const double alpha = node.number("Alpha|alpha", 1); alpha != 1) product = node.with_number(Op::kMul, product, alpha);
  if (const double beta = node.number("Beta|beta", 1); beta != 1) sum = node.with_number(Op::kMul, sum, beta);
  node.out("Out", node.binary(Op::kAdd, product, sum));
}

void import_dot(Node& node, Op op) {
  const ValueId product = node.binary(Op::kMul, node.in("X"), node.in("Y"));
  node.out("Out", node.unary(op, product, {{"axes", List{-1}}, {"keepdims", int64_t{0}}}));
}

void import_einsum(Node& node, Op op) { node.out("Out", node.b.add(op, node.all("Operands"), {{"equation", node.text("equation", "")}})); }

constexpr OperatorRow kProductRows[] = {
    {"addmm", "addmm baddbmm", "Input X Y", "Out", import_addmm, Op::kMatMul},
    {"bmm", "bmm", "X Y", "Out", import_matmul, Op::kMatMul},
    {"dot", "dot", "X Y", "Out", import_dot, Op::kReduceSum},
    {"einsum", "einsum", "Operands", "Out", import_einsum, Op::kEinsum},
    {"fc", "fc", "Input W Bias", "Out", import_fc},
    {"fused_gemm_epilogue", "fused_gemm_epilogue gemm_epilogue linear_v2", "X Y Bias", "Out", import_linear, Op::kMatMul},
    {"matmul matmul_v2", "matmul legacy_matmul", "X Y", "Out", import_matmul, Op::kMatMul},
    {"mul", "matmul_with_flatten", "X Y", "Out", import_mul},
    {"mv", "mv", "X Vec", "Out", import_mv, Op::kMatMul},
};

}  // namespace

std::span<const OperatorRow> product_operators() { return kProductRows; }

}  // namespace serin::formats::paddle
