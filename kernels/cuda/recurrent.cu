// recurrent.cu: RNN, GRU and LSTM.
//
// What comes from x does not wait for the last step: one product for each direction gives it for all steps and sequences. A step is one launch: a warp takes a
// unit and four sequences, its lanes share the products with the last state (all gates of a unit at once, so that a state is read once), and its first lanes
// go through the gates. Both directions run in the same launches. A GRU whose reset gate comes before the product needs two launches for a step. States are
// float (double for f64) whatever the tensors are; h is written to another place than it is read from. Sequences that are over keep theirs.

#include "kernels/recurrent.h"

#include "kernels/cuda/block.h"
#include "kernels/cuda/index.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/rows.h"
#include "kernels/ref/generic.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;
using Operands = RecurrentOperands;

constexpr int kWarps = 4;      // and so units, of a block
constexpr int kSequences = 4;  // that a warp takes at once

enum class Cell : uint8_t { kRnn, kGru, kLstm };

/// What does not change from step to step. C: the type of the states.
template <class T, class C>
struct Call {
  int64_t steps, batch, hidden, gates;
  int64_t x_row_step, x_row_batch;  ///< rows of from_x from step to step, from sequence to sequence
  int64_t y_step, y_batch, y_direction;
  bool reverse, linear_before_reset, input_forget;
  C clip;
  const T *from_x, *r, *b, *p;  ///< from_x [directions, steps * batch, gates * hidden]; b and p may be null
  const int32_t* lengths;       ///< may be null
  C *c, *gated, *z;             ///< [directions, batch, hidden]
  T* y;                         ///< may be null
  int activations;              ///< of a direction
  RecurrentActivation f[6];
};

/// One warp's part of a step.
template <class T, class C>
struct Part {
  int64_t unit, first, direction;  ///< unit; of the sequences
  __device__ explicit Part(const Call<T, C>&)
      : unit(static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.y),
        first(static_cast<int64_t>(blockIdx.y) * kSequences),
        direction(blockIdx.z) {}
};

/// sums[g][s] = row (gates from + g) of r for a unit, times the states of sequence first + s; all lanes get all of them.
template <int kGates, class T, class C>
__device__ void multiply_states(const Call<T, C>& call, const Part<T, C>& part, int from, const C* states, C (&sums)[kGates][kSequences]) {
  const T* const r = call.r + ((part.direction * call.gates + from) * call.hidden + part.unit) * call.hidden;
  states += (part.direction * call.batch + part.first) * call.hidden;
  const int64_t gate_step = call.hidden * call.hidden;
  for (int64_t i = threadIdx.x; i < call.hidden; i += 32) {
    C state[kSequences];
#pragma unroll
    for (int s = 0; s < kSequences; ++s) state[s] = part.first + s < call.batch ? states[s * call.hidden + i] : C(0);
#pragma unroll
    for (int g = 0; g < kGates; ++g) {
      const C weight = load(r[g * gate_step + i]);
#pragma unroll
      for (int s = 0; s < kSequences; ++s) sums[g][s] += weight * state[s];
    }
  }
#pragma unroll
  for (int g = 0; g < kGates; ++g) {
#pragma unroll
    for (int s = 0; s < kSequences; ++s) sums[g][s] = combine_warp(sums[g][s], Plus{});
  }
}

/// Of the sequence that this lane goes on with; a lane without one has none.
template <class T, class C>
struct Sequence {
  bool is_one, goes_on;
  int64_t time, state;  ///< the step of x and y; its unit among the states
  const T *x, *b;       ///< gate 0 of the unit, from x; of its bias, which may be null

  __device__ Sequence(const Call<T, C>& call, const Part<T, C>& part, int64_t step) {
    const int64_t sequence = part.first + threadIdx.x;
    is_one = threadIdx.x < kSequences && sequence < call.batch;
    goes_on = false, time = step, state = 0, x = b = nullptr;
    if (!is_one) return;
    int64_t length = call.lengths ? call.lengths[sequence] : call.steps;
    length = length < 0 ? 0 : length > call.steps ? call.steps : length;
    goes_on = step < length;
    if (goes_on && (call.reverse || part.direction == 1)) time = length - 1 - step;
    state = (part.direction * call.batch + sequence) * call.hidden + part.unit;
    const int64_t rows = call.gates * call.hidden, of_direction = call.steps * call.batch;
    x = call.from_x + (part.direction * of_direction + time * call.x_row_step + sequence * call.x_row_batch) * rows + part.unit;
    if (call.b) b = call.b + part.direction * 2 * rows + part.unit;
  }
  /// What x and both biases give to a gate; `with_state` false: without the bias of the state.
  __device__ C from_x(const Call<T, C>& call, int gate, bool with_state = true) const {
    C sum = load(x[gate * call.hidden]);
    if (b) sum += load(b[gate * call.hidden]);
    if (b && with_state) sum += load(b[(call.gates + gate) * call.hidden]);
    return sum;
  }
  __device__ C state_bias(const Call<T, C>& call, int gate) const {
    return b ? static_cast<C>(load(b[(call.gates + gate) * call.hidden])) : C(0);
  }
  /// h goes to the next states and to y; zero to y where the sequence is over.
  __device__ void store(const Call<T, C>& call, const Part<T, C>& part, C h, C* next) const {
    next[state] = h;
    const int64_t sequence = part.first + threadIdx.x;
    if (call.y)
      call.y[time * call.y_step + sequence * call.y_batch + part.direction * call.y_direction + part.unit] =
          goes_on ? cast<T>(h) : cast<T>(C(0));
  }
};

/// This lane's column of the sums.
template <int kGates, class C>
__device__ void own(const C (&sums)[kGates][kSequences], C (&mine)[kGates]) {
#pragma unroll
  for (int g = 0; g < kGates; ++g) {
    mine[g] = sums[g][0];
#pragma unroll
    for (int s = 1; s < kSequences; ++s) mine[g] = static_cast<int>(threadIdx.x) == s ? sums[g][s] : mine[g];
  }
}

/// f(part, sequence, gates): of this lane's sequence what the states give to kGates gates of this warp's unit, from gate `from` on.
template <int kGates, class T, class C, class F>
__device__ void for_each_sequence(const Call<T, C>& call, int64_t step, int from, const C* states, F&& f) {
  const Part<T, C> part(call);
  if (part.unit >= call.hidden) return;  // a whole warp
  C sums[kGates][kSequences] = {}, gates[kGates];
  multiply_states(call, part, from, states, sums);
  const Sequence<T, C> sequence(call, part, step);
  if (!sequence.is_one) return;
  own(sums, gates);
  f(part, sequence, gates);
}

/// From the last states to the next ones.
template <class T, class C>
__global__ void lstm_step(Call<T, C> call, int64_t step, const C* last, C* next) {
  for_each_sequence<4>(call, step, 0, last, [&](const Part<T, C>& part, const Sequence<T, C>& sequence, C(&gates)[4]) {
    C h = last[sequence.state], peepholes[3];
    if (sequence.goes_on) {
      for (int g = 0; g < 4; ++g) gates[g] += sequence.from_x(call, g);
      for (int i = 0; call.p && i < 3; ++i) peepholes[i] = load(call.p[(part.direction * 3 + i) * call.hidden + part.unit]);
      C c = call.c[sequence.state];
      lstm_unit(gates, call.p ? peepholes : nullptr, call.f + part.direction * call.activations, call.clip, call.input_forget, c, h);
      call.c[sequence.state] = c;
    }
    sequence.store(call, part, h, next);
  });
}

template <class T, class C>
__global__ void rnn_step(Call<T, C> call, int64_t step, const C* last, C* next) {
  for_each_sequence<1>(call, step, 0, last, [&](const Part<T, C>& part, const Sequence<T, C>& sequence, C(&gates)[1]) {
    C h = last[sequence.state];
    if (sequence.goes_on) h = call.f[part.direction * call.activations](clipped(gates[0] + sequence.from_x(call, 0), call.clip));
    sequence.store(call, part, h, next);
  });
}

/// The reset gate after the product.
template <class T, class C>
__global__ void gru_step(Call<T, C> call, int64_t step, const C* last, C* next) {
  for_each_sequence<3>(call, step, 0, last, [&](const Part<T, C>& part, const Sequence<T, C>& sequence, C(&gates)[3]) {
    C h = last[sequence.state];
    if (sequence.goes_on) {
      const RecurrentActivation* const f = call.f + part.direction * call.activations;
      const C z = f[0](clipped(gates[0] + sequence.from_x(call, 0), call.clip)),
              r = f[0](clipped(gates[1] + sequence.from_x(call, 1), call.clip));
      const C candidate = sequence.from_x(call, 2, false) + r * (gates[2] + sequence.state_bias(call, 2));
      h = gru_unit(z, f[1](clipped(candidate, call.clip)), h);
    }
    sequence.store(call, part, h, next);
  });
}

/// The reset gate before the product: first z and r times the state.
template <class T, class C>
__global__ void gru_gates(Call<T, C> call, int64_t step, const C* last) {
  for_each_sequence<2>(call, step, 0, last, [&](const Part<T, C>& part, const Sequence<T, C>& sequence, C(&gates)[2]) {
    if (!sequence.goes_on) return;  // nobody reads them
    const RecurrentActivation& f = call.f[part.direction * call.activations];
    call.z[sequence.state] = f(clipped(gates[0] + sequence.from_x(call, 0), call.clip));
    call.gated[sequence.state] = f(clipped(gates[1] + sequence.from_x(call, 1), call.clip)) * last[sequence.state];
  });
}

template <class T, class C>
__global__ void gru_candidate(Call<T, C> call, int64_t step, const C* last, C* next) {
  for_each_sequence<1>(call, step, 2, call.gated, [&](const Part<T, C>& part, const Sequence<T, C>& sequence, C(&gates)[1]) {
    C h = last[sequence.state];
    if (sequence.goes_on) {
      const RecurrentActivation& f = call.f[part.direction * call.activations + 1];
      h = gru_unit(call.z[sequence.state], f(clipped(gates[0] + sequence.from_x(call, 2), call.clip)), h);
    }
    sequence.store(call, part, h, next);
  });
}

/// Where sequence b of direction d has its states.
struct StatePlaces {
  int64_t hidden, batch, elements, batch_step, direction_step;
  __device__ int64_t at(int64_t i) const { return i / (hidden * batch) * direction_step + i / hidden % batch * batch_step + i % hidden; }
};

/// From an operand, which may be null, to [directions, batch, hidden].
template <class T, class C>
__global__ void load_states(StatePlaces places, const T* from, C* to) {
  for (int64_t i = first_element(); i < places.elements; i += element_step())
    to[i] = from ? static_cast<C>(load(from[places.at(i)])) : C(0);
}

template <class T, class C>
__global__ void store_states(StatePlaces places, const C* from, T* to) {
  for (int64_t i = first_element(); i < places.elements; i += element_step()) to[places.at(i)] = cast<T>(from[i]);
}

__global__ void check_lengths(const int32_t* lengths, int64_t batch, int64_t steps, IndexFaults faults) {
  for (int64_t b = first_element(); b < batch; b += element_step()) {
    if (lengths[b] < 0 || lengths[b] > steps) faults.report(lengths[b], 0);
  }
}

template <class T>
class RecurrentKernel final : public Kernel {
 public:
  RecurrentKernel(Cell cell, const Recurrent& op, const OpDesc& desc, Product product)
      : cell_(cell), op_(op), sizes_(op, desc.inputs[Operands::kX].shape), product_(std::move(product)) {
    from_x_bytes_ = rounded(static_cast<size_t>(op.directions * sizes_.steps * sizes_.batch * op.gates * op.hidden) * sizeof(T));
    state_bytes_ = rounded(static_cast<size_t>(states()) * sizeof(C));
  }

  size_t scratch_bytes() const override { return from_x_bytes_ + kStates * state_bytes_ + product_.scratch_bytes(); }
  std::string explain(int64_t detail) const override {
    return "a sequence of " + std::to_string(detail >> 4) + " steps is given, x has " + std::to_string(sizes_.steps);
  }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    C* state[kStates];
    for (size_t i = 0; i < kStates; ++i) state[i] = reinterpret_cast<C*>(stream.scratch + from_x_bytes_ + i * state_bytes_);
    auto* const from_x = reinterpret_cast<T*>(stream.scratch);
    if (Fault fault = multiply_x(stream, in, from_x)) return fault;
    const Call<T, C> call = call_of(in, out, from_x, state);
    if (call.lengths) {
      if (Fault fault = launch(stream, {blocks_for(sizes_.batch, kThreads), kThreads}, check_lengths, call.lengths, sizes_.batch,
                               sizes_.steps, IndexFaults(stream)))
        return fault;
    }
    const StatePlaces places{op_.hidden, sizes_.batch, states(), sizes_.state_batch, sizes_.state_direction};
    const Grid all{blocks_for(states(), kThreads), kThreads};
    C *h = state[0], *other = state[1];
    if (Fault fault = launch(stream, all, load_states<T, C>, places, operand_as<T>(in, Operands::kInitialH), h)) return fault;
    if (cell_ == Cell::kLstm) {
      if (Fault fault = launch(stream, all, load_states<T, C>, places, operand_as<T>(in, Operands::kInitialC), call.c)) return fault;
    }
    for (int64_t step = 0; step < sizes_.steps; ++step) {
      if (Fault fault = run_step(stream, call, step, h, other)) return fault;
      std::swap(h, other);
    }
    for (size_t i = 1; i < out.size() && i < 3; ++i) {
      if (!out[i].data) continue;
      if (Fault fault = launch(stream, all, store_states<T, C>, places, i == 1 ? h : call.c, out[i].as<T>())) return fault;
    }
    return kOk;
  }

 private:
  using C = compute_t<T>;
  static constexpr unsigned kThreads = 128;
  static constexpr size_t kStates = 5;  // h twice, c, a GRU's z and gated state
  static constexpr size_t kAlign = 256;

  static size_t rounded(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }
  int64_t states() const { return op_.directions * sizes_.batch * op_.hidden; }
  int64_t rows() const { return op_.gates * op_.hidden; }

  /// [steps * batch, input] times w transposed, for each direction.
  Fault multiply_x(Stream& stream, Inputs in, T* from_x) const {
    const int64_t x_rows = sizes_.steps * sizes_.batch;
    for (int64_t d = 0; d < op_.directions; ++d) {
      const DType dtype = in[Operands::kX].dtype;
      const TensorView x{dtype, {x_rows, op_.input}, in[Operands::kX].data};
      const TensorView w{dtype, {rows(), op_.input}, in[Operands::kW].as<T>() + d * rows() * op_.input};
      if (Fault fault = product_.run(stream, x, w, {dtype, {x_rows, rows()}, from_x + d * x_rows * rows()},
                                     stream.scratch + from_x_bytes_ + kStates * state_bytes_))
        return fault;
    }
    return kOk;
  }

  Call<T, C> call_of(Inputs in, Outputs out, const T* from_x, C* const (&state)[kStates]) const {
    Call<T, C> call{};
    call.steps = sizes_.steps, call.batch = sizes_.batch, call.hidden = op_.hidden, call.gates = op_.gates;
    call.x_row_step = op_.batch_first ? 1 : sizes_.batch, call.x_row_batch = op_.batch_first ? sizes_.steps : 1;
    call.y_step = sizes_.y_step, call.y_batch = sizes_.y_batch, call.y_direction = sizes_.y_direction;
    call.reverse = op_.reverse, call.linear_before_reset = op_.linear_before_reset, call.input_forget = op_.input_forget;
    call.clip = static_cast<C>(op_.clip);
    call.from_x = from_x, call.r = operand_as<T>(in, Operands::kR), call.b = operand_as<T>(in, Operands::kB);
    call.p = operand_as<T>(in, Operands::kP), call.lengths = operand_as<int32_t>(in, Operands::kSequenceLens);
    call.c = state[2], call.gated = state[3], call.z = state[4];
    call.y = out.empty() ? nullptr : out[0].as<T>();
    call.activations = static_cast<int>(op_.activations.size() / static_cast<size_t>(op_.directions));
    std::copy(op_.activations.begin(), op_.activations.end(), call.f);
    return call;
  }

  Fault run_step(const Stream& stream, const Call<T, C>& call, int64_t step, const C* last, C* next) const {
    const Grid grid{dim3(blocks_for(op_.hidden, kWarps), static_cast<unsigned>(ceil_div(sizes_.batch, kSequences)),
                         static_cast<unsigned>(op_.directions)),
                    dim3(32, kWarps)};
    if (cell_ == Cell::kLstm) return launch(stream, grid, lstm_step<T, C>, call, step, last, next);
    if (cell_ == Cell::kRnn) return launch(stream, grid, rnn_step<T, C>, call, step, last, next);
    if (op_.linear_before_reset) return launch(stream, grid, gru_step<T, C>, call, step, last, next);
    if (Fault fault = launch(stream, grid, gru_gates<T, C>, call, step, last)) return fault;
    return launch(stream, grid, gru_candidate<T, C>, call, step, last, next);
  }

  const Cell cell_;
  const Recurrent op_;
  const RecurrentRun sizes_;
  const Product product_;
  size_t from_x_bytes_ = 0, state_bytes_ = 0;
};

}  // namespace

Prepared prepare_recurrent(const Products& products, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const auto& generic = std::get<Generic>(desc.op);
  const Cell cell = generic.name == "LSTM" ? Cell::kLstm : generic.name == "GRU" ? Cell::kGru : Cell::kRnn;
  const auto op = recurrent_of(generic.name, generic.attributes, desc.inputs, why);
  if (!op) return nullptr;
  const DType dtype = desc.inputs[Operands::kX].dtype;
  const RecurrentRun sizes(*op, desc.inputs[Operands::kX].shape);
  if (op->activations.size() > 6) return refuse(why, "too many activations");
  if (ceil_div(sizes.batch, kSequences) > 65535) return refuse(why, "more than 262,140 sequences");
  const int64_t x_rows = sizes.steps * sizes.batch, rows = op->gates * op->hidden;
  MatMul by_w;
  by_w.transpose_b = true;
  auto product = products.prepare(by_w, dtype, {x_rows, op->input}, {rows, op->input}, {x_rows, rows}, context, why);
  if (!product) return nullptr;
  return ref::for_floats(dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return std::make_unique<RecurrentKernel<T>>(cell, *op, desc, std::move(*product));
  });
}

}  // namespace serin::kernels::cuda
