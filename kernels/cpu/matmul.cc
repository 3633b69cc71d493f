// matmul.cc: MatMul in f32 on our own GEMM: y = act(alpha * a b + bias + residual).
//
// A constant b is packed once and shared; any other is packed into scratch in each run. Shapes are read at run time, so one kernel serves a whole
// bucket. Where b is one matrix for all batches, the batches of a are rows of one tall matrix.

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

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

class GemmKernel final : public Kernel {
 public:
  GemmKernel(const Simd& simd, const OpDesc& desc, PrepareContext& context)
      : simd_(simd), op_(std::get<MatMul>(desc.op)), activation_(simd.unary(op_.epilogue.activation)) {
    const TensorDesc& b = desc.inputs[1];
    const Matrix matrix(b.shape, op_.transpose_b);
    const int64_t packed = packed_size(simd, matrix.rows, matrix.columns);
    if (!b.constant) {
      scratch_bytes_ = static_cast<size_t>(packed) * sizeof(float);
      return;
    }
    const std::string layout = "gemm_f32_panel" + std::to_string(simd.panel_width) + (op_.transpose_b ? "_transposed" : "");
    const int64_t count = batch_of(b.shape).elements();
    weights_ = context.weights->get(b.constant_id, layout, static_cast<size_t>(packed * count) * sizeof(float), [&](std::byte* data) {
      for (int64_t i = 0; i < count; ++i) {
        const float* source = static_cast<const float*>(b.constant) + i * matrix.size();
        pack_b(simd, matrix.view(source), matrix.rows, matrix.columns, reinterpret_cast<float*>(data) + i * packed);
      }
    });
  }

  size_t scratch_bytes() const override { return scratch_bytes_; }
  uint32_t packed_inputs() const override { return weights_ ? 0b10 : 0; }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    multiply(stream, in[0], in[1], out[0]);
    if (op_.alpha != 1.f || op_.bias || op_.epilogue.residual || op_.epilogue.activation != UnaryFn::kIdentity) finish(in, out[0]);
    return kOk;
  }

 private:
  void multiply(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& y) const {
    const Matrix ma(a.shape, op_.transpose_a), mb(b.shape, op_.transpose_b);
    const int64_t packed = packed_size(simd_, mb.rows, mb.columns);
    const Shape batch = batch_of(y.shape);
    const bool one_b = batch_of(b.shape).elements() == 1;
    if (one_b && !op_.transpose_a && batch_of(a.shape).elements() == batch.elements()) {
      gemm(simd_, batch.elements() * ma.rows, mb.columns, ma.columns, ma.view(a.as<const float>()), packed_b(stream, mb, b, 0),
           y.as<float>(), mb.columns);
      return;
    }
    const float* ready = nullptr;
    int64_t ready_at = -1;
    for_each<2>(batch, {broadcast_strides(batch_of(a.shape), batch), broadcast_strides(batch_of(b.shape), batch)},
                [&](int64_t i, const auto& at) {
                  if (weights_) {
                    ready = packed_b(stream, mb, b, at[1] * packed);
                  } else if (at[1] != ready_at) {
                    ready = packed_b(stream, mb, b, at[1] * mb.size());
                    ready_at = at[1];
                  }
                  gemm(simd_, ma.rows, mb.columns, ma.columns, ma.view(a.as<const float>() + at[0] * ma.size()), ready,
                       y.as<float>() + i * ma.rows * mb.columns, mb.columns);
                });
  }

  /// One packed matrix: `offset` floats into the packed weights, or the one at `offset` floats of b packed into scratch.
  const float* packed_b(Stream& stream, const Matrix& matrix, const TensorView& b, int64_t offset) const {
    if (weights_) return reinterpret_cast<const float*>(weights_->data) + offset;
    auto* scratch = reinterpret_cast<float*>(stream.scratch);
    pack_b(simd_, matrix.view(b.as<const float>() + offset), matrix.rows, matrix.columns, scratch);
    return scratch;
  }

  /// Scales, adds and activates y, one row at a time.
  void finish(Inputs in, const TensorView& y) const {
    Shape rows = y.shape;
    const size_t last = rows.rank() - 1;
    const int64_t n = rows[last];
    rows[last] = 1;
    const TensorView none;
    const TensorView& bias = op_.bias ? in[2] : none;
    const TensorView& residual = op_.epilogue.residual ? in.back() : none;
    const Strides bias_strides = broadcast_strides(bias.shape, y.shape), residual_strides = broadcast_strides(residual.shape, y.shape);
    for_each<2>(rows, {bias_strides, residual_strides}, [&](int64_t row, const auto& at) {
      float* target = y.as<float>() + row * n;
      const float* bias_row = bias.data ? bias.as<const float>() + at[0] : nullptr;
      const float* residual_row = residual.data ? residual.as<const float>() + at[1] : nullptr;
      simd_.add_terms(target, n, op_.alpha, bias_row, bias_strides[last] == 0, residual_row, residual_strides[last] == 0);
      if (op_.epilogue.activation != UnaryFn::kIdentity) activation_(target, target, n, op_.epilogue.alpha, op_.epilogue.beta);
    });
  }

  const Simd& simd_;
  const MatMul op_;
  const UnaryLoop activation_;
  size_t scratch_bytes_ = 0;
  std::shared_ptr<const PackedWeights::Buffer> weights_;
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

// A call of oneDNN costs 0.35 us before it computes. Measured on one core of an AVX-512 machine, oneDNN 3.2 : ours, microseconds, for a constant b:
// 1x64x64 0.40 : 0.15, 16x64x64 0.84 : 0.57, 32x128x128 4.2 : 3.9, 128x768x768 546 : 558; with Gelu, which costs ours more, 16x16x16 0.49 : 0.31 but
// 16x64x64 1.1 : 1.5. Where b must be packed in every run, 4 of 16x16x16 0.59 : 0.54, 8 of them 0.82 : 1.0.
Prepared matmul_small(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const Epilogue& epilogue = std::get<MatMul>(desc.op).epilogue;
  const bool costly =
      epilogue.activation != UnaryFn::kIdentity && epilogue.activation != UnaryFn::kRelu && epilogue.activation != UnaryFn::kClip;
  const Shape& a = desc.inputs[0].shape;
  const Shape& y = desc.outputs[0].shape;
  if (a.rank() < 2 || y.rank() < 2) return refuse(why, "operands must have rank 2 or more");
  const int64_t k = a[a.rank() - (std::get<MatMul>(desc.op).transpose_a ? 2 : 1)];
  const int64_t largest = desc.inputs[1].constant ? 65'536 : 16'384;
  if (y.elements() * k > largest || (costly && y.elements() > 256)) return refuse(why, "not a shape for which it beats oneDNN");
  return matmul(simd, desc, context, why);
}

}  // namespace serin::kernels::cpu
