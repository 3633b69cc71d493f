// recurrent_cases.h: RNNs, GRUs and LSTMs, for whoever computes them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/harness.h"

namespace serin::kernels::test {

struct RecurrentSizes {
  int64_t steps, batch, input, hidden, directions;
};

/// With every optional operand that `name` has.
inline Case recurrent(const std::string& name, const RecurrentSizes& s, bool batch_first = false) {
  const int64_t gates = name == "LSTM" ? 4 : name == "GRU" ? 3 : 1, rows = gates * s.hidden, d = s.directions;
  const Shape state = batch_first ? Shape{s.batch, d, s.hidden} : Shape{d, s.batch, s.hidden};
  Generic op{.name = name, .attributes = {}};
  if (d == 2) op.attributes.set("direction", std::string("bidirectional"));
  if (batch_first) op.attributes.set("layout", int64_t{1});
  Tensor lengths = random_integers(DType::kInt32, {s.batch}, 5, 0, static_cast<int>(s.steps));
  Case c{.op = op,
         .inputs = {random_tensor(batch_first ? Shape{s.batch, s.steps, s.input} : Shape{s.steps, s.batch, s.input}, 1),
                    random_tensor({d, rows, s.input}, 2, 0.3f), random_tensor({d, rows, s.hidden}, 3, 0.3f),
                    random_tensor({d, 2 * rows}, 4, 0.3f), lengths, random_tensor(state, 6)},
         .outputs = {{DType::kFloat32, batch_first ? Shape{s.batch, s.steps, d, s.hidden} : Shape{s.steps, d, s.batch, s.hidden}},
                     {DType::kFloat32, state}},
         .constants = 0b110};
  if (name != "LSTM") return c;
  c.inputs.push_back(random_tensor(state, 7));
  c.inputs.push_back(random_tensor({d, 3 * s.hidden}, 8, 0.3f));
  c.outputs.push_back({DType::kFloat32, state});
  return c;
}

}  // namespace serin::kernels::test
