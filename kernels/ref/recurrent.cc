// recurrent.cc: RNN, GRU and LSTM, one sequence, one direction, one step, one unit at a time, in double.
//
// A cell computes the next hidden state of all units from a row of x and the last state. The operand of an activation is clipped.

#include "kernels/recurrent.h"

#include <algorithm>
#include <span>
#include <utility>

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

namespace {

using Operands = RecurrentOperands;
using Row = std::span<double>;

/// w, r, b and p of one direction.
template <class T>
struct Weights {
  const Recurrent& op;
  const T *w, *r, *b, *p;  // b and p may be null

  Weights(const Recurrent& recurrent, Inputs in, int64_t d) : op(recurrent) {
    const auto at = [&](size_t i, int64_t size) -> const T* {
      const TensorView* const view = operand(in, i);
      return view ? view->as<const T>() + d * size : nullptr;
    };
    const int64_t rows = op.gates * op.hidden;
    w = at(Operands::kW, rows * op.input);
    r = at(Operands::kR, rows * op.hidden);
    b = at(Operands::kB, 2 * rows);
    p = at(Operands::kP, 3 * op.hidden);
  }

  double from_x(int64_t gate, int64_t unit, const T* x) const {
    const int64_t row = gate * op.hidden + unit;
    double sum = b ? widen(b[row]) : 0;
    for (int64_t i = 0; i < op.input; ++i) sum += widen(w[row * op.input + i]) * widen(x[i]);
    return sum;
  }
  double from_h(int64_t gate, int64_t unit, Row h) const {
    const int64_t row = gate * op.hidden + unit;
    double sum = b ? widen(b[op.gates * op.hidden + row]) : 0;
    for (int64_t i = 0; i < op.hidden; ++i) sum += widen(r[row * op.hidden + i]) * h[static_cast<size_t>(i)];
    return sum;
  }
  double gate(int64_t g, int64_t unit, const T* x, Row h) const { return from_x(g, unit, x) + from_h(g, unit, h); }
};

/// What a sequence is computed in: rows of `hidden` numbers that lie in scratch.
struct Rows {
  static constexpr size_t kCount = 6;
  Row h, c, next, z, r, gated;  // the states; the next h; a GRU's gates

  Rows(std::byte* scratch, int64_t hidden) {
    auto* at = reinterpret_cast<double*>(scratch);
    for (Row* row : {&h, &c, &next, &z, &r, &gated}) *row = {std::exchange(at, at + hidden), static_cast<size_t>(hidden)};
  }
};

template <class T>
void rnn_step(const Weights<T>& m, const RecurrentActivation* f, const T* x, const Rows& at) {
  for (size_t j = 0; j < at.h.size(); ++j) at.next[j] = f[0](clipped(m.gate(0, static_cast<int64_t>(j), x, at.h), m.op.clip));
}

template <class T>
void gru_step(const Weights<T>& m, const RecurrentActivation* f, const T* x, const Rows& at) {
  const auto& [h, c, next, z, r, gated] = at;
  for (size_t j = 0; j < h.size(); ++j) {
    const auto unit = static_cast<int64_t>(j);
    z[j] = f[0](clipped(m.gate(0, unit, x, h), m.op.clip));
    r[j] = f[0](clipped(m.gate(1, unit, x, h), m.op.clip));
    gated[j] = r[j] * h[j];
  }
  for (size_t j = 0; j < h.size(); ++j) {
    const auto unit = static_cast<int64_t>(j);
    const double from_h = m.op.linear_before_reset ? r[j] * m.from_h(2, unit, h) : m.from_h(2, unit, gated);
    next[j] = gru_unit(z[j], f[1](clipped(m.from_x(2, unit, x) + from_h, m.op.clip)), h[j]);
  }
}

template <class T>
void lstm_step(const Weights<T>& m, const RecurrentActivation* f, const T* x, const Rows& at) {
  for (size_t j = 0; j < at.h.size(); ++j) {
    const auto unit = static_cast<int64_t>(j);
    double gates[4], peepholes[3] = {};
    for (int g = 0; g < 4; ++g) gates[g] = m.gate(g, unit, x, at.h);
    for (int g = 0; m.p && g < 3; ++g) peepholes[g] = widen(m.p[g * m.op.hidden + unit]);
    lstm_unit(gates, m.p ? peepholes : nullptr, f, m.op.clip, m.op.input_forget, at.c[j], at.next[j]);
  }
}

/// From x and the states to at.next, the next h; an LSTM's c in place.
template <class T>
using Step = void (*)(const Weights<T>&, const RecurrentActivation*, const T*, const Rows&);

template <class T>
void load_state(const TensorView* state, int64_t offset, Row row) {
  for (size_t j = 0; j < row.size(); ++j) row[j] = state ? widen(state->as<const T>()[offset + static_cast<int64_t>(j)]) : 0;
}

template <class T>
void store(TensorView* out, int64_t offset, Row row) {
  for (size_t j = 0; out && j < row.size(); ++j) out->as<T>()[offset + static_cast<int64_t>(j)] = narrow<T>(row[j]);
}

template <class T>
Fault run(const Recurrent& op, Step<T> step, Stream& stream, Inputs in, Outputs out) {
  const RecurrentRun sizes(op, in[Operands::kX].shape);
  const TensorView* const lens = operand(in, Operands::kSequenceLens);
  if (Fault fault = check_sequence_lens(sizes, lens)) return fault;
  const auto result = [&](size_t i) { return i < out.size() ? &out[i] : nullptr; };
  const size_t activations = op.activations.size() / static_cast<size_t>(op.directions);
  const Rows rows(stream.scratch, op.hidden);
  for (int64_t d = 0; d < op.directions; ++d) {
    const Weights<T> weights(op, in, d);
    for (int64_t b = 0; b < sizes.batch; ++b) {
      const int64_t length = sequence_length(sizes, lens, b), state = d * sizes.state_direction + b * sizes.state_batch;
      const int64_t y = d * sizes.y_direction + b * sizes.y_batch;
      load_state<T>(operand(in, Operands::kInitialH), state, rows.h);
      load_state<T>(operand(in, Operands::kInitialC), state, rows.c);
      for (int64_t t = 0; t < length; ++t) {
        const int64_t time = op.runs_backwards(d) ? length - 1 - t : t;
        const T* const x = in[Operands::kX].as<const T>() + time * sizes.x_step + b * sizes.x_batch;
        step(weights, op.activations.data() + static_cast<size_t>(d) * activations, x, rows);
        std::ranges::copy(rows.next, rows.h.begin());
        store<T>(result(0), y + time * sizes.y_step, rows.h);
      }
      std::ranges::fill(rows.next, 0.0);
      for (int64_t time = length; time < sizes.steps; ++time) store<T>(result(0), y + time * sizes.y_step, rows.next);
      store<T>(result(1), state, rows.h);
      store<T>(result(2), state, rows.c);
    }
  }
  return kOk;
}

/// kCell: which of the three.
enum class Cell : uint8_t { kRnn, kGru, kLstm };

template <class T>
Step<T> step_of(Cell cell) {
  return cell == Cell::kRnn ? rnn_step<T> : cell == Cell::kGru ? gru_step<T> : lstm_step<T>;
}

Prepared prepare(Cell cell, std::string_view name, const GenericDesc& desc, std::string& why) {
  const auto op = recurrent_of(name, desc.attributes, desc.inputs, why);
  if (!op) return nullptr;
  return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel(
        [op = *op, step = step_of<T>(cell)](Stream& stream, Inputs in, Outputs out) -> Fault { return run<T>(op, step, stream, in, out); },
        {.scratch_bytes = Rows::kCount * static_cast<size_t>(op->hidden) * sizeof(double)});
  });
}

}  // namespace

Prepared rnn(const GenericDesc& desc, std::string& why) { return prepare(Cell::kRnn, "RNN", desc, why); }
Prepared gru(const GenericDesc& desc, std::string& why) { return prepare(Cell::kGru, "GRU", desc, why); }
Prepared lstm(const GenericDesc& desc, std::string& why) { return prepare(Cell::kLstm, "LSTM", desc, why); }

}  // namespace serin::kernels::ref
