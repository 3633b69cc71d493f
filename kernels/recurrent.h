// recurrent.h: The parts that RNN, GRU and LSTM share on every backend: operands, sizes, directions and the activations given by name.
//
//   x  [steps, batch, input]         w [directions, gates * hidden, input]     sequence_lens [batch] (i32)
//   y  [steps, directions, batch, hidden]   r [directions, gates * hidden, hidden]    initial_h, y_h, initial_c, y_c
//                                                                                      [directions, batch, hidden]
//   b  [directions, 2 * gates * hidden]: that of w, then that of r                    p [directions, 3 * hidden] (LSTM's peepholes)
//
// layout = 1 puts the batch first: x [batch, steps, input], y [batch, steps, directions, hidden], states [batch, directions, hidden].
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.h"
#include "kernels/functors.h"

namespace serin::kernels {

/// f(x), as in op.h, or one of those that only recurrent operators have.
struct RecurrentActivation {
  enum class Fn : uint8_t { kUnary, kAffine, kThresholdedRelu, kScaledTanh, kSoftsign } kind = Fn::kUnary;
  UnaryFn unary = UnaryFn::kTanh;
  double alpha = 0, beta = 0;

  template <class C>
  SERIN_HD C operator()(C x) const {
    const C a = static_cast<C>(alpha), b = static_cast<C>(beta);
    switch (kind) {
      case Fn::kAffine: return a * x + b;
      case Fn::kThresholdedRelu: return x >= a ? x : C(0);
      case Fn::kScaledTanh: return a * std::tanh(b * x);
      case Fn::kSoftsign: return x / (C(1) + std::fabs(x));
      case Fn::kUnary: break;
    }
    return kernels::unary(unary, x, static_cast<float>(alpha), static_cast<float>(beta));
  }
};

/// The input of an activation is clipped if `limit` is above 0.
template <class C>
SERIN_HD inline C clipped(C x, C limit) {
  return limit > 0 && x > limit ? limit : limit > 0 && x < -limit ? -limit : x;
}

/// A unit of an LSTM: gates are i, o, f, c; peepholes those of i, o, f (null: none); f its three activations. Computes the next c and h
/// from c.
template <class C>
SERIN_HD inline void lstm_unit(const C (&gates)[4], const C* peepholes, const RecurrentActivation* f, C clip, bool input_forget, C& c,
                               C& h) {
  const auto gate = [&](int i, int peephole, C state) {
    return clipped(peepholes ? gates[i] + peepholes[peephole] * state : gates[i], clip);
  };
  const C forget = f[0](gate(2, 2, c)), input = input_forget ? C(1) - forget : f[0](gate(0, 0, c));
  c = forget * c + input * f[1](clipped(gates[3], clip));
  h = f[0](gate(1, 1, c)) * f[2](clipped(c, clip));
}

/// A unit of a GRU: computes the next h from h.
template <class C>
SERIN_HD inline C gru_unit(C z, C candidate, C h) {
  return (C(1) - z) * candidate + z * h;
}

/// One RNN, GRU or LSTM with its description; all invalid descriptions have been refused.
struct Recurrent {
  int64_t gates = 0;       ///< 1, 3, 4
  int64_t directions = 1;  ///< 2: the second one runs backwards
  bool reverse = false;    ///< one direction, backwards
  bool batch_first = false;
  int64_t hidden = 0, input = 0;
  double clip = 0;                               ///< 0: none
  std::vector<RecurrentActivation> activations;  ///< of each direction in turn
  bool linear_before_reset = false;              ///< GRU
  bool input_forget = false;                     ///< LSTM: the input gate is 1 - the forget gate
  bool runs_backwards(int64_t direction) const { return reverse || direction == 1; }
};

/// Operands by position, for all three.
struct RecurrentOperands {
  enum : size_t { kX, kW, kR, kB, kSequenceLens, kInitialH, kInitialC, kP };
};

/// Nothing, with the reason in `why`, if attributes or shapes contradict each other.
std::optional<Recurrent> recurrent_of(std::string_view op, const Attributes& attributes, std::span<const TensorDesc> inputs,
                                      std::string& why);

/// The sizes that may change from run to run, and the addresses of a sequence's rows, in elements.
struct RecurrentRun {
  int64_t steps, batch;
  int64_t x_step, x_batch;  ///< distance of two steps, of two sequences in x
  int64_t y_step, y_batch, y_direction;
  int64_t state_batch, state_direction;

  RecurrentRun(const Recurrent& op, const Shape& x) : steps(x[op.batch_first ? 1 : 0]), batch(x[op.batch_first ? 0 : 1]) {
    const int64_t h = op.hidden, d = op.directions;
    x_step = op.batch_first ? op.input : batch * op.input;
    x_batch = op.batch_first ? steps * op.input : op.input;
    y_step = op.batch_first ? d * h : d * batch * h;
    y_batch = op.batch_first ? steps * d * h : h;
    y_direction = op.batch_first ? h : batch * h;
    state_batch = op.batch_first ? d * h : h;
    state_direction = op.batch_first ? h : batch * h;
  }
};

/// The error in sequence_lens (null: not given): each length must be in [0, steps].
Fault check_sequence_lens(const RecurrentRun& run, const TensorView* lens);

/// The length of sequence b: all of x, or the value in sequence_lens.
inline int64_t sequence_length(const RecurrentRun& run, const TensorView* lens, int64_t b) {
  return lens ? lens->as<const int32_t>()[b] : run.steps;
}

}  // namespace serin::kernels
