// RNN, GRU and LSTM against the reference kernel, on every instruction set.

#include "kernels/recurrent.h"

#include <gtest/gtest.h>

#include "tests/kernels/every_isa.h"
#include "tests/kernels/recurrent_cases.h"

namespace serin::kernels::test {
namespace {

class Recurrences : public EveryIsa {
 protected:
  static void expect_match(const Case& c) { EveryIsa::expect_match(c, {1e-5, 5e-6}); }
};
SERIN_ON_EVERY_ISA(Recurrences);

TEST_P(Recurrences, OfEachCell) {
  for (const char* name : {"RNN", "GRU", "LSTM"}) {
    SCOPED_TRACE(name);
    expect_match(recurrent(name, {7, 3, 5, 19, 1}));
    expect_match(recurrent(name, {9, 4, 20, 32, 2}));
    expect_match(recurrent(name, {5, 2, 3, 17, 2}, true));
    expect_match(recurrent(name, {1, 1, 1, 1, 1}));
  }
}

TEST_P(Recurrences, BackwardsAndWithOtherActivations) {
  Case gru = recurrent("GRU", {6, 2, 4, 21, 1});
  set(gru, "direction", std::string("reverse"));
  set(gru, "linear_before_reset", int64_t{1});
  set(gru, "activations", std::vector<std::string>{"HardSigmoid", "LeakyRelu"});
  set(gru, "activation_alpha", std::vector<double>{0.3, 0.05});
  expect_match(gru);
}

TEST(Recurrent, RefusesWhatContradictsItself) {
  Case activations = recurrent("LSTM", {2, 1, 3, 4, 1});
  set(activations, "activations", std::vector<std::string>{"Tanh"});
  EXPECT_NE(reference_fault(activations).find("activations"), std::string::npos);
  Case unknown = recurrent("RNN", {2, 1, 3, 4, 1});
  set(unknown, "activations", std::vector<std::string>{"Sinus"});
  EXPECT_NE(reference_fault(unknown).find("'Sinus'"), std::string::npos);
  Case direction = recurrent("RNN", {2, 1, 3, 4, 1});
  set(direction, "direction", std::string("sideways"));
  EXPECT_NE(reference_fault(direction).find("'sideways'"), std::string::npos);
  Case shape = recurrent("GRU", {2, 1, 3, 4, 1});
  shape.inputs[3] = random_tensor({1, 7}, 1);
  EXPECT_NE(reference_fault(shape).find("b has shape"), std::string::npos);
}

TEST(Recurrent, FaultsOnLengthsThatTheInputDoesNotHave) {
  Case c = recurrent("RNN", {2, 1, 3, 4, 1});
  c.inputs[4] = Tensor({1}, std::vector<int32_t>{3});
  EXPECT_NE(reference_fault(c).find("sequence_lens[0] is 3"), std::string::npos) << reference_fault(c);
}

}  // namespace
}  // namespace serin::kernels::test
