// matmul.cc: y = act(alpha * a b + bias + residual), batch dimensions broadcast, floats summed in double.

#include "kernels/indexing.h"
#include "kernels/ref/epilogue.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::ref {

namespace {

/// A [..., rows, columns] operand after its transpose, batch dimensions broadcast to those of `y`.
struct Matrix {
  Strides batch;
  int64_t row_stride, column_stride;

  Matrix(const Shape& shape, bool transposed, const Shape& y) {
    const size_t rank = shape.rank();
    Shape folded = shape;  // the last two dimensions as 1, so that only the batch dimensions broadcast
    folded[rank - 1] = folded[rank - 2] = 1;
    Shape y_batch = y;
    y_batch[y.rank() - 1] = y_batch[y.rank() - 2] = 1;
    batch = broadcast_strides(folded, y_batch);
    const int64_t size = shape[rank - 1] * shape[rank - 2];
    for (int64_t& stride : batch) stride *= size;
    row_stride = transposed ? 1 : shape[rank - 1];
    column_stride = transposed ? shape[rank - 1] : 1;
  }
};

template <class T>
Fault run(const MatMul& op, Inputs in, Outputs out) {
  const TensorView& y = out[0];
  const size_t rank = y.shape.rank();
  const Matrix a(in[0].shape, op.transpose_a, y.shape);
  const Matrix b(in[1].shape, op.transpose_b, y.shape);
  const size_t a_rank = in[0].shape.rank();
  const int64_t k = in[0].shape[op.transpose_a ? a_rank - 2 : a_rank - 1];
  const Epilogued<T> epilogue(op.epilogue, op.bias, in, y.shape);

  Strides index_m{}, index_n{};  // give the row and the column of each element of y
  index_m[rank - 2] = index_n[rank - 1] = 1;
  for_each<4>(y.shape, {a.batch, b.batch, index_m, index_n}, [&](int64_t i, const auto& at) {
    const T* row = in[0].as<const T>() + at[0] + at[2] * a.row_stride;
    const T* column = in[1].as<const T>() + at[1] + at[3] * b.column_stride;
    sum_t<T> sum = 0;
    for (int64_t p = 0; p < k; ++p) sum = add(sum, multiply(widen(row[p * a.column_stride]), widen(column[p * b.row_stride])));
    if (op.alpha != 1.f) sum = static_cast<sum_t<T>>(static_cast<double>(op.alpha) * static_cast<double>(sum));
    y.as<T>()[i] = epilogue(sum, i);
  });
  return kOk;
}

}  // namespace

Prepared matmul(const OpDesc& desc, PrepareContext&, std::string& why) {
  const MatMul op = std::get<MatMul>(desc.op);
  if (!has_operands(desc, 2 + op.bias + op.epilogue.residual, why)) return nullptr;
  if (!one_dtype(desc)) return refuse(why, "inputs differ in dtype");
  if (desc.inputs[0].shape.rank() < 2 || desc.inputs[1].shape.rank() < 2) return refuse(why, "operands must have rank 2 or more");
  return for_numbers(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([op](Stream&, Inputs in, Outputs out) -> Fault { return run<T>(op, in, out); });
  });
}

}  // namespace serin::kernels::ref
