// matmul.cc: MatMul in f32 on our own GEMM: y = act(alpha * a b + bias + residual).
//
// A constant b is packed once and shared; any other is packed into scratch in each run. Shapes are read at run time, so one kernel serves a
// whole bucket. Where b is one matrix for all batches, the batches of a are rows of one tall matrix. Bias, residual and activation are
// applied to each tile of y while it is in the L1 cache.

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kRowsWorthPacking = 192;

/// The last two dimensions of an operand after its transpose, and how it is stepped over.
struct Matrix {
  int64_t rows, columns, row_stride, column_stride;
  Matrix(const Shape& shape, bool transposed) {
    const size_t rank = shape.rank();
    rows = shape[rank - 2], columns = shape[rank - 1];
    row_stride = columns, column_stride = 1;
    if (transposed) std::swap(rows, columns), std::swap(row_stride, column_stride);
  }
  int64_t size() const { return rows * columns; }
  MatrixView view(const float* data) const { return {data, row_stride, column_stride}; }
};

Shape batch_of(const Shape& shape) { return Shape(shape.dims().first(shape.rank() - 2)); }

/// An operand that is added: where its first element for a batch lies, and how it is broadcast over a matrix of y.
struct Added {
  const float* data = nullptr;
  Strides strides{};  // over the shape of y

  Added() = default;
  Added(const TensorView& view, const Shape& y) : data(view.as<const float>()), strides(broadcast_strides(view.shape, y)) {}
};

class GemmKernel final : public Kernel {
 public:
  GemmKernel(const Simd& simd, const OpDesc& desc, PrepareContext& context) : loops_(*simd.dense), op_(std::get<MatMul>(desc.op)) {
    if (!loops_.finishes(op_.epilogue.activation)) rare_activation_ = simd.unary(op_.epilogue.activation);
    const TensorDesc& b = desc.inputs[1];
    const Matrix matrix(b.shape, op_.transpose_b);
    const int64_t packed = packed_size(loops_, matrix.rows, matrix.columns);
    if (!b.constant) {
      scratch_bytes_ = static_cast<size_t>(packed) * sizeof(float);
      return;
    }
    const std::string layout = "gemm_f32_panel" + std::to_string(loops_.panel_width) + (op_.transpose_b ? "_transposed" : "");
    const int64_t count = batch_of(b.shape).elements();
    weights_ = packed_floats(context, b, layout, packed * count, [&](const float* source, float* to) {
      for (int64_t i = 0; i < count; ++i)
        pack_b(loops_, matrix.view(source + i * matrix.size()), matrix.rows, matrix.columns, to + i * packed);
    });
  }

  size_t scratch_bytes() const override { return scratch_bytes_; }
  uint32_t packed_inputs() const override { return weights_ ? 0b10 : 0; }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const TensorView &a = in[0], &b = in[1], &y = out[0];
    const Matrix ma(a.shape, op_.transpose_a), mb(b.shape, op_.transpose_b);
    const Shape batch = batch_of(y.shape);
    const Added bias = op_.bias ? Added(in[2], y.shape) : Added();
    const Added residual = op_.epilogue.residual ? Added(in.back(), y.shape) : Added();

    const bool one_b = batch_of(b.shape).elements() == 1 && !op_.transpose_a && batch_of(a.shape).elements() == batch.elements();
    if (one_b && is_one_row(bias, y.shape) && is_one_row(residual, y.shape)) {
      const GemmFinish finish = finish_of(bias, residual, y.shape, 0, 0);
      gemm(stream, loops_, batch.elements() * ma.rows, mb.columns, ma.columns, ma.view(a.as<const float>()), packed_b(stream, mb, b, 0),
           y.as<float>(), mb.columns, finishes() ? &finish : nullptr);
    } else {
      multiply_batches(stream, in, y, bias, residual);
    }
    const Epilogue& epilogue = op_.epilogue;
    if (rare_activation_) rare_activation_(y.as<float>(), y.as<float>(), y.elements(), epilogue.alpha, epilogue.beta);
    return kOk;
  }

 private:
  /// Each batch is a product of its own; a b that several of them share is packed once.
  void multiply_batches(const Stream& stream, Inputs in, const TensorView& y, const Added& bias, const Added& residual) const {
    const TensorView &a = in[0], &b = in[1];
    const Matrix ma(a.shape, op_.transpose_a), mb(b.shape, op_.transpose_b);
    const Shape batch = batch_of(y.shape);
    const int64_t packed = packed_size(loops_, mb.rows, mb.columns);
    const float* ready = nullptr;
    int64_t ready_at = -1;
    for_each<4>(batch,
                {broadcast_strides(batch_of(a.shape), batch), broadcast_strides(batch_of(b.shape), batch), bias.strides, residual.strides},
                [&](int64_t i, const auto& at) {
                  if (weights_) {
                    ready = packed_b(stream, mb, b, at[1] * packed);
                  } else if (at[1] != ready_at) {
                    ready = packed_b(stream, mb, b, at[1] * mb.size());
                    ready_at = at[1];
                  }
                  const GemmFinish finish = finish_of(bias, residual, y.shape, at[2], at[3]);
                  gemm(stream, loops_, ma.rows, mb.columns, ma.columns, ma.view(a.as<const float>() + at[0] * ma.size()), ready,
                       y.as<float>() + i * ma.rows * mb.columns, mb.columns, finishes() ? &finish : nullptr);
                });
  }

  /// One packed matrix: `offset` floats into the packed weights, or the one at `offset` floats of b packed into scratch.
  const float* packed_b(const Stream& stream, const Matrix& matrix, const TensorView& b, int64_t offset) const {
    if (weights_) return floats(weights_) + offset;
    auto* scratch = reinterpret_cast<float*>(stream.scratch);
    pack_b(loops_, matrix.view(b.as<const float>() + offset), matrix.rows, matrix.columns, scratch);
    return scratch;
  }

  bool finishes() const { return op_.alpha != 1.f || op_.bias || op_.epilogue.residual || op_.epilogue.activation != UnaryFn::kIdentity; }

  /// Whether all rows of y, of whatever batch, lie evenly for this operand: it is one row, one number, or all of y.
  static bool is_one_row(const Added& added, const Shape& y) {
    const size_t row = y.rank() - 2;
    int64_t step = added.strides[row] * y[row];
    for (size_t axis = row; axis-- > 0; step *= y[axis]) {
      if (y[axis] != 1 && added.strides[axis] != step) return false;
    }
    return true;
  }

  GemmFinish finish_of(const Added& bias, const Added& residual, const Shape& y, int64_t bias_at, int64_t residual_at) const {
    const size_t column = y.rank() - 1;
    GemmFinish finish;
    finish.alpha = op_.alpha;
    if (bias.data) finish.bias = bias.data + bias_at;
    finish.bias_row = row_step(bias, y), finish.bias_column = bias.strides[column];
    if (residual.data) finish.residual = residual.data + residual_at;
    finish.residual_row = row_step(residual, y), finish.residual_column = residual.strides[column];
    if (!rare_activation_) finish.fn = op_.epilogue.activation;
    finish.fn_alpha = op_.epilogue.alpha, finish.fn_beta = op_.epilogue.beta;
    return finish;
  }

  /// From one row of y to the next; a matrix of one row takes it from its batches.
  static int64_t row_step(const Added& added, const Shape& y) {
    for (size_t axis = y.rank() - 1; axis-- > 0;) {
      if (y[axis] != 1) return added.strides[axis];
    }
    return 0;
  }

  const DenseLoops& loops_;
  const MatMul op_;
  UnaryLoop rare_activation_ = nullptr;  ///< one that products do not finish with: run over all of y
  size_t scratch_bytes_ = 0;
  PackedBuffer weights_;
};

}  // namespace

Prepared matmul(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why) {
  if (!is_f32(desc, why)) return nullptr;
  const MatMul& op = std::get<MatMul>(desc.op);
  if (desc.inputs.size() != 2u + op.bias + op.epilogue.residual) return refuse(why, "unexpected number of inputs");
  if (desc.inputs[0].shape.rank() < 2 || desc.inputs[1].shape.rank() < 2) return refuse(why, "operands must have rank 2 or more");
  if (!simd.unary(op.epilogue.activation)) return refuse(why, "no vector code for the activation");
  return std::make_unique<GemmKernel>(simd, desc, context);
}

// Measured on one core of an AVX-512 machine, oneDNN 3.2 : ours, microseconds, weights not in cache (kernels/README.md): 128x768x768 616 : 568,
// 128x3072x768 2480 : 2300, 32x384x384 37 : 35, 1x768x768 79 : 69. On one core of Zen 3 (AVX2), 128x768x768 takes 2350 : 1950 with weights in cache,
// and all products of a ViT-B/16 785 : 468 milliseconds. A b that is packed in each run needs many rows that read it: 512x512x512 takes 6740 : 5160, 128x2048x32 206 : 297.
Prepared matmul_fast(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const Shape& a = desc.inputs[0].shape;
  const Shape& y = desc.outputs[0].shape;
  if (a.rank() < 2 || y.rank() < 2) return refuse(why, "operands must have rank 2 or more");
  const int64_t k = a[a.rank() - (std::get<MatMul>(desc.op).transpose_a ? 2 : 1)];
  const bool small = y.elements() * k <= (desc.inputs[1].constant ? 65'536 : 16'384);
  const int64_t rows = y[y.rank() - 2];
  const bool beats = desc.inputs[1].constant ? simd.width >= 8 : simd.width == 8 && rows >= kRowsWorthPacking;
  if (!small && !beats) return refuse(why, "not a shape for which it beats oneDNN");
  return matmul(simd, desc, context, why);
}

}  // namespace serin::kernels::cpu
