// recurrent.cc: RNN, GRU and LSTM in f32 on the GEMM.
//
// The part of the gates that depends on x does not wait for the previous step: one product computes it for all steps and sequences, [steps
// * batch, gates * hidden]. The part that depends on the previous state is one product of [batch, hidden] in each step. Weights are packed
// at load. Gates are activated as whole rows by the vector loops. Sequences that are over keep their state; one that runs backwards starts
// at its own end.

#include "kernels/recurrent.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

using Operands = RecurrentOperands;

enum class Cell : uint8_t { kRnn, kGru, kLstm };

class RecurrentKernel final : public Kernel {
 public:
  RecurrentKernel(const Simd& simd, Cell cell, const Recurrent& op, const OpDesc& desc, PrepareContext& context)
      : simd_(simd), loops_(*simd.dense), cell_(cell), op_(op), rows_(op.gates * op.hidden) {
    w_ = packed(desc.inputs[Operands::kW], op.input, "w", context);
    r_ = packed(desc.inputs[Operands::kR], op.hidden, "r", context);
    const Shape& x = desc.inputs[Operands::kX].shape;
    const int64_t batch = x[op.batch_first ? 0 : 1];
    // From x; from the state; bias; h, c, and a row for what is in between.
    floats_ = x[0] * x[1] * rows_ + batch * rows_ + rows_ + 3 * batch * op.hidden + rows_;
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(floats_) * sizeof(float); }
  uint32_t packed_inputs() const override { return 0b110; }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const RecurrentRun sizes(op_, in[Operands::kX].shape);
    const TensorView* const lens = in.size() > Operands::kSequenceLens && in[Operands::kSequenceLens].dtype != DType::kUndefined
                                       ? &in[Operands::kSequenceLens]
                                       : nullptr;
    if (Fault fault = check_sequence_lens(sizes, lens)) return fault;
    for (int64_t d = 0; d < op_.directions; ++d) run_direction(stream, in, out, sizes, lens, d);
    return kOk;
  }

 private:
  /// Each direction of w or r [directions, rows, k] as a packed [k, rows]; a GRU's rows for z and r apart from those for h.
  PackedBuffer packed(const TensorDesc& weight, int64_t k, const std::string& which, PrepareContext& context) const {
    const int64_t size = matrix_floats(k);
    const std::string layout = "recurrent_f32_" + which + std::to_string(loops_.panel_width) + "_" + std::to_string(op_.gates);
    return packed_floats(context, weight, layout, size * op_.directions, [&](const float* source, float* to) {
      for (int64_t d = 0; d < op_.directions; ++d, source += rows_ * k, to += size) {
        pack_b(loops_, {source, 1, k}, k, first_rows(), to);
        if (first_rows() < rows_)
          pack_b(loops_, {source + first_rows() * k, 1, k}, k, op_.hidden, to + packed_size(loops_, k, first_rows()));
      }
    });
  }
  int64_t first_rows() const { return cell_ == Cell::kGru ? 2 * op_.hidden : rows_; }
  int64_t matrix_floats(int64_t k) const {
    return packed_size(loops_, k, first_rows()) + (first_rows() < rows_ ? packed_size(loops_, k, op_.hidden) : 0);
  }
  const float* matrix(const PackedBuffer& packed, int64_t k, int64_t d, bool second = false) const {
    return floats(packed) + d * matrix_floats(k) + (second ? packed_size(loops_, k, first_rows()) : 0);
  }

  /// y [m, rows_] = a [m, k] times the whole of a packed matrix.
  void multiply(const Stream& stream, int64_t m, int64_t k, const float* a, const PackedBuffer& packed, int64_t d, float* y,
                const float* bias) const {
    GemmFinish finish;
    finish.bias = bias, finish.bias_column = 1;
    gemm(stream, loops_, m, first_rows(), k, {a, k, 1}, matrix(packed, k, d), y, rows_, bias ? &finish : nullptr);
    if (first_rows() == rows_) return;
    if (bias) finish.bias = bias + first_rows();
    gemm(stream, loops_, m, op_.hidden, k, {a, k, 1}, matrix(packed, k, d, true), y + first_rows(), rows_, bias ? &finish : nullptr);
  }

  struct Direction {
    float *from_x, *from_h, *bias, *h, *c, *gated, *row;
    const float *peepholes, *state_bias;  // may be null
    const RecurrentActivation* f;
  };

  void run_direction(const Stream& stream, Inputs in, Outputs out, const RecurrentRun& sizes, const TensorView* lens, int64_t d) const {
    const int64_t hidden = op_.hidden, states = sizes.batch * hidden;
    Direction at{};
    at.from_x = reinterpret_cast<float*>(stream.scratch);
    at.from_h = at.from_x + sizes.steps * sizes.batch * rows_;
    at.bias = at.from_h + sizes.batch * rows_;
    at.h = at.bias + rows_, at.c = at.h + states, at.gated = at.c + states, at.row = at.gated + states;
    at.f = op_.activations.data() + static_cast<size_t>(d) * op_.activations.size() / static_cast<size_t>(op_.directions);
    if (const float* p = operand_as<float>(in, Operands::kP)) at.peepholes = p + d * 3 * hidden;
    set_bias(operand_as<float>(in, Operands::kB), d, at);
    multiply(stream, sizes.steps * sizes.batch, op_.input, in[Operands::kX].as<const float>(), w_, d, at.from_x, at.bias);
    load_state(operand_as<float>(in, Operands::kInitialH), sizes, d, at.h);
    load_state(operand_as<float>(in, Operands::kInitialC), sizes, d, at.c);

    float* const y = out.empty() ? nullptr : out[0].as<float>();
    for (int64_t t = 0; t < sizes.steps; ++t) {
      multiply_state(stream, sizes.batch, d, at);
      for (int64_t b = 0; b < sizes.batch; ++b) {
        const int64_t length = sequence_length(sizes, lens, b);
        const int64_t time = t >= length ? t : op_.runs_backwards(d) ? length - 1 - t : t;
        float* const target = y ? y + d * sizes.y_direction + b * sizes.y_batch + time * sizes.y_step : nullptr;
        if (t >= length) {
          if (target) std::fill_n(target, hidden, 0.f);
          continue;
        }
        const int64_t x_row = op_.batch_first ? b * sizes.steps + time : time * sizes.batch + b;
        step(stream, d, b, at, at.from_x + x_row * rows_);
        if (target) std::memcpy(target, at.h + b * hidden, static_cast<size_t>(hidden) * sizeof(float));
      }
    }
    for (size_t i = 1; i < out.size() && i < 3; ++i) store_state(i == 1 ? at.h : at.c, sizes, d, out[i].as<float>());
  }

  /// Both biases are added to what comes from x, but for the one that a GRU's reset gate scales.
  void set_bias(const float* b, int64_t d, Direction& at) const {
    std::fill_n(at.bias, rows_, 0.f);
    if (!b) return;
    const float *const of_x = b + d * 2 * rows_, *const of_h = of_x + rows_;
    const bool apart = cell_ == Cell::kGru && op_.linear_before_reset;
    for (int64_t i = 0; i < rows_; ++i) at.bias[i] = of_x[i] + (apart && i >= 2 * op_.hidden ? 0.f : of_h[i]);
    if (apart) at.state_bias = of_h + 2 * op_.hidden;
  }

  /// What the last states of all sequences give to the gates: all of them, or z and r where the reset comes before the product.
  void multiply_state(const Stream& stream, int64_t batch, int64_t d, const Direction& at) const {
    if (cell_ == Cell::kGru && !op_.linear_before_reset)
      gemm(stream, loops_, batch, first_rows(), op_.hidden, {at.h, op_.hidden, 1}, matrix(r_, op_.hidden, d), at.from_h, rows_, nullptr);
    else
      multiply(stream, batch, op_.hidden, at.h, r_, d, at.from_h, nullptr);
  }

  // ---- rows of `hidden` numbers ----
  void apply(const RecurrentActivation& f, float* x, int64_t n) const {
    simd_.unary(f.unary)(x, x, n, static_cast<float>(f.alpha), static_cast<float>(f.beta));
  }
  void binary(BinaryFn fn, const float* a, const float* b, float* y) const { simd_.binary(fn)(a, false, b, false, y, op_.hidden); }
  /// y += a * b.
  void add_product(const float* a, const float* b, float* y, float* row) const {
    binary(BinaryFn::kMul, a, b, row);
    binary(BinaryFn::kAdd, y, row, y);
  }

  void step(const Stream& stream, int64_t d, int64_t b, const Direction& at, const float* from_x) const {
    float* const gates = at.from_h + b * rows_;
    float* const h = at.h + b * op_.hidden;
    if (cell_ == Cell::kRnn) {
      binary(BinaryFn::kAdd, gates, from_x, h);
      apply(at.f[0], h, op_.hidden);
    } else if (cell_ == Cell::kGru) {
      gru(stream, d, at, gates, from_x, h, at.gated + b * op_.hidden);
    } else {
      lstm(at, gates, from_x, h, at.c + b * op_.hidden);
    }
  }

  /// Gates in the order z, r, h.
  void gru(const Stream& stream, int64_t d, const Direction& at, float* gates, const float* from_x, float* h, float* gated) const {
    const int64_t n = op_.hidden;
    float *const z = gates, *const r = gates + n, *const candidate = gates + 2 * n;
    simd_.add_terms(gates, 2 * n, 1.f, from_x, false, nullptr, false);
    apply(at.f[0], gates, 2 * n);
    if (op_.linear_before_reset) {
      if (at.state_bias) binary(BinaryFn::kAdd, candidate, at.state_bias, candidate);
      binary(BinaryFn::kMul, candidate, r, candidate);
    } else {
      binary(BinaryFn::kMul, r, h, gated);
      gemm(stream, loops_, 1, n, n, {gated, n, 1}, matrix(r_, n, d, true), candidate, n, nullptr);
    }
    binary(BinaryFn::kAdd, candidate, from_x + 2 * n, candidate);
    apply(at.f[1], candidate, n);
    binary(BinaryFn::kSub, h, candidate, h);  // h = candidate + z (h - candidate)
    binary(BinaryFn::kMul, h, z, h);
    binary(BinaryFn::kAdd, h, candidate, h);
  }

  /// Gates in the order i, o, f, c.
  void lstm(const Direction& at, float* gates, const float* from_x, float* h, float* c) const {
    const int64_t n = op_.hidden;
    float *const input = gates, *const output = gates + n, *const forget = gates + 2 * n, *const candidate = gates + 3 * n;
    simd_.add_terms(gates, 4 * n, 1.f, from_x, false, nullptr, false);
    if (at.peepholes) {
      add_product(at.peepholes, c, input, at.row);
      add_product(at.peepholes + 2 * n, c, forget, at.row);
    }
    apply(at.f[0], input, n);
    apply(at.f[0], forget, n);
    apply(at.f[1], candidate, n);
    binary(BinaryFn::kMul, forget, c, c);
    add_product(input, candidate, c, at.row);
    if (at.peepholes) add_product(at.peepholes + n, c, output, at.row);
    apply(at.f[0], output, n);
    std::memcpy(h, c, static_cast<size_t>(n) * sizeof(float));
    apply(at.f[2], h, n);
    binary(BinaryFn::kMul, h, output, h);
  }

  void load_state(const float* state, const RecurrentRun& sizes, int64_t d, float* rows) const {
    for (int64_t b = 0; b < sizes.batch; ++b) {
      float* const row = rows + b * op_.hidden;
      if (state)
        std::memcpy(row, state + d * sizes.state_direction + b * sizes.state_batch, static_cast<size_t>(op_.hidden) * sizeof(float));
      else
        std::fill_n(row, op_.hidden, 0.f);
    }
  }
  void store_state(const float* rows, const RecurrentRun& sizes, int64_t d, float* state) const {
    for (int64_t b = 0; b < sizes.batch; ++b)
      std::memcpy(state + d * sizes.state_direction + b * sizes.state_batch, rows + b * op_.hidden,
                  static_cast<size_t>(op_.hidden) * sizeof(float));
  }

  const Simd& simd_;
  const DenseLoops& loops_;
  const Cell cell_;
  const Recurrent op_;
  const int64_t rows_;
  PackedBuffer w_, r_;
  int64_t floats_ = 0;
};

}  // namespace

Prepared recurrent(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const Generic& generic = std::get<Generic>(desc.op);
  const bool lstm = generic.name == "LSTM", gru = generic.name == "GRU";
  if (!lstm && !gru && generic.name != "RNN") return refuse(why, "recurrent operators only");
  const auto op = recurrent_of(generic.name, generic.attributes, desc.inputs, why);
  if (!op) return nullptr;
  if (desc.inputs[0].dtype != DType::kFloat32) return refuse(why, "f32 only");
  if (!desc.inputs[Operands::kW].constant || !desc.inputs[Operands::kR].constant) return refuse(why, "weights that are computed");
  if (is_bounded(desc)) return refuse(why, "only shapes that are known");
  if (op->clip > 0 || op->input_forget) return refuse(why, "neither clips nor couples gates");
  for (const RecurrentActivation& f : op->activations) {
    if (f.kind != RecurrentActivation::Fn::kUnary || !simd.unary(f.unary)) return refuse(why, "no vector code for an activation");
  }
  return std::make_unique<RecurrentKernel>(simd, lstm ? Cell::kLstm : gru ? Cell::kGru : Cell::kRnn, *op, desc, context);
}

}  // namespace serin::kernels::cpu
