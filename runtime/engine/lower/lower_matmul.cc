// lower_matmul.cc: MatMul, Gemm and FusedMatMul are one kernel, y = act(alpha * a b + bias + residual).
//
// Vectors become matrices with one row or column by a view. Where b is one matrix, the batch dimensions of a are rows of a longer matrix:
// one large product instead of many small ones.

#include "kernels/indexing.h"
#include "runtime/engine/lower/lowering.h"

namespace serin::engine {

namespace {

struct Product {
  TensorId a, b, y;
  TensorId bias = kNoTensor, residual = kNoTensor;
  kernels::MatMul op = {};
};

Status emit(Lowering& at, Product product) {
  std::vector<TensorId> inputs = {product.a, product.b};
  if (product.bias != kNoTensor) inputs.push_back(product.bias);
  if (product.residual != kNoTensor) inputs.push_back(product.residual);
  product.op.bias = product.bias != kNoTensor;
  product.op.epilogue.residual = product.residual != kNoTensor;
  return at.emit(product.op, std::move(inputs), {product.y});
}

/// [k] as [1, k] (a) or [k, 1] (b); the result and what is added to it get the axes that this adds.
Status add_missing_axes(Lowering& at, Product& product) {
  const bool a_vector = at.shape(product.a).rank() == 1, b_vector = at.shape(product.b).rank() == 1;
  if (!a_vector && !b_vector) return {};
  if (at.bounded(product.a) || at.bounded(product.b)) return Lowering::refuse("multiplies a vector whose size depends on the data");
  const auto widened = [&](TensorId id) {
    const Shape& shape = at.shape(id);
    std::vector<int64_t> dims(shape.begin(), shape.end());
    if (b_vector && (id == product.y || !dims.empty())) dims.push_back(1);
    if (a_vector && (id == product.y || dims.size() > 1)) dims.insert(dims.end() - 1, 1);
    return at.view(id, Shape(dims));
  };
  if (product.bias != kNoTensor) product.bias = widened(product.bias);
  if (product.residual != kNoTensor) product.residual = widened(product.residual);
  product.y = widened(product.y);
  if (a_vector) product.a = at.view(product.a, {1, at.shape(product.a)[0]});
  if (b_vector) product.b = at.view(product.b, {at.shape(product.b)[0], 1});
  return {};
}

/// Whether an operand added to y can be seen as added to the rows of y as one matrix: it is one row, one number, or all of y.
bool adds_by_row(const Shape& operand, const Shape& y) {
  return operand == y || operand.elements() == 1 || (operand.elements() == y.back() && operand.back() == y.back());
}

void batch_to_rows(Lowering& at, Product& product) {
  const Shape a = at.shape(product.a), b = at.shape(product.b), y = at.shape(product.y);
  if (a.rank() <= 2 || b.rank() != 2 || product.op.transpose_a || at.bounded(product.a)) return;
  if (product.bias != kNoTensor && !adds_by_row(at.shape(product.bias), y)) return;
  const int64_t rows = kernels::product(y, 0, y.rank() - 1);
  const auto flat = [&](TensorId id) {
    const Shape& shape = at.shape(id);
    if (shape == y) return at.view(id, {rows, y.back()});
    return at.view(id, {shape.rank() == 0 ? 1 : shape.elements()});
  };
  product.a = at.view(product.a, {rows, a.back()});
  if (product.bias != kNoTensor) product.bias = flat(product.bias);
  if (product.residual != kNoTensor) product.residual = flat(product.residual);
  product.y = at.view(product.y, {rows, y.back()});
}

}  // namespace

Status lower_matmul(Lowering& at) {
  Product product{.a = at.input(0), .b = at.input(1), .y = at.output()};
  SERIN_CHECK(add_missing_axes(at, product));
  batch_to_rows(at, product);
  return emit(at, product);
}

Status lower_fused_matmul(Lowering& at) {
  Product product{.a = at.input(0), .b = at.input(1), .y = at.output()};
  product.op.transpose_a = at.node().integer("transA", 0) != 0;
  product.op.transpose_b = at.node().integer("transB", 0) != 0;
  SERIN_TRY(product.op.epilogue, lower_epilogue(at));
  if (at.has(2)) product.bias = at.input(2);
  if (at.has(3)) product.residual = at.input(3);
  if (product.residual != kNoTensor && at.shape(product.residual) != at.shape(product.y))
    return Lowering::refuse("the residual has another shape than the result");
  SERIN_CHECK(add_missing_axes(at, product));
  batch_to_rows(at, product);
  return emit(at, product);
}

Status lower_gemm(Lowering& at) {
  Product product{.a = at.input(0), .b = at.input(1), .y = at.output()};
  product.op.transpose_a = at.node().integer("transA", 0) != 0;
  product.op.transpose_b = at.node().integer("transB", 0) != 0;
  product.op.alpha = static_cast<float>(at.node().number("alpha", 1));
  const double beta = at.node().number("beta", 1);
  if (at.has(2) && beta != 0) {
    product.bias = at.input(2);
    if (beta != 1) {
      const TensorId scaled = at.temporary_like(at.input(2));
      const TensorId factor = at.number(at.dtype(at.input(2)), beta);
      SERIN_CHECK(at.emit(kernels::Binary{kernels::BinaryFn::kMul}, {at.input(2), factor}, {scaled}));
      product.bias = scaled;
    }
  }
  return emit(at, product);
}

}  // namespace serin::engine
