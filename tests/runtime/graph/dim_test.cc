// Dimensions as polynomials: equal ones are equal however they came about, and binding gives what the arithmetic on numbers gives.

#include "runtime/graph/dim.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace serin::graph {
namespace {

const Dim kN = Dim::symbol("n");
const Dim kSeq = Dim::symbol("seq");

TEST(Dim, PrintsAsAPersonWrites) {
  EXPECT_EQ(Dim(7).str(), "7");
  EXPECT_EQ((kSeq * 2 + 1).str(), "2*seq + 1");
  EXPECT_EQ((kN * kSeq - kN).str(), "n*seq - n");
  EXPECT_EQ((Dim(0) - kN).str(), "-n");
  EXPECT_EQ(floor_div(kN + 1, 2).str(), "floor((n + 1) / 2)");
  EXPECT_EQ(max(kN, kSeq).str(), "max(n, seq)");
  EXPECT_EQ(Dim::symbol("batch size").str(), "\"batch size\"");
}

TEST(Dim, EqualPolynomialsAreEqual) {
  EXPECT_EQ((kN + 1) * (kN - 1), kN * kN - 1);
  EXPECT_EQ(kN - kN, Dim(0));
  EXPECT_EQ(max(kN, kSeq), max(kSeq, kN));
  EXPECT_EQ(max(kN + 1, kN), kN + 1);
  EXPECT_FALSE(kN == kSeq);
  EXPECT_FALSE(Dim::symbol("floor((n + 1) / 2)") == floor_div(kN + 1, 2)) << "a symbol that is named like an expression is not one";
}

TEST(Dim, DividesExactlyWhereItCan) {
  EXPECT_EQ(floor_div(kN * kSeq * 64, kSeq * 16), kN * 4);
  EXPECT_EQ(floor_div(kN * 12, kN), Dim(12));
  EXPECT_EQ(floor_div(kN * kSeq * 64 + kN * 64, kSeq * 8 + 8), kN * 8) << "tokens and the class token";
  EXPECT_EQ(floor_div((kN + 1) * (kSeq + kN + 2), kN + 1), kSeq + kN + 2);
  EXPECT_EQ(floor_div(kN * kSeq + 1, kSeq + 1).str(), "floor((n*seq + 1) / (seq + 1))");
  EXPECT_EQ(floor_div(kN * 5 + 3, 2), kN * 2 + 1 + floor_div(kN + 1, 2));
  EXPECT_EQ(floor_div(floor_div(kN, 2) + 1, 2), floor_div(kN + 2, 4));
  EXPECT_EQ(floor_div(kN, 0), Dim(0));
}

TEST(Dim, KnowsItsSignWhereThatIsSure) {
  EXPECT_TRUE((kN * kSeq + 1).positive());
  EXPECT_FALSE(kN.positive());
  EXPECT_TRUE(kN.nonnegative());
  EXPECT_FALSE((kN - 1).nonnegative());
  EXPECT_TRUE(floor_div(kN, 2).nonnegative());
}

TEST(Dim, SeesThatAMinimumIsNoMoreThanWhatItIsOf) {
  const Dim sliced = kSeq + 32 - max(kSeq, 32);  // min(seq, 32)
  EXPECT_TRUE(sliced.nonnegative());
  EXPECT_EQ(max(sliced, 0), sliced);
  EXPECT_EQ(max(sliced, kSeq), kSeq);
  EXPECT_FALSE((sliced - 1).nonnegative());
}

TEST(Dim, BindingGivesWhatNumbersGive) {
  std::mt19937 random(1);
  for (int turn = 0; turn < 300; ++turn) {
    // The same random expression twice: over symbols that are bound at the end, and over numbers from the beginning.
    const Bindings bindings{{"n", random() % 9}, {"seq", random() % 9}};
    Dim symbolic = kN, number = bindings.at("n");
    for (int step = 0; step < 6; ++step) {
      const auto constant = static_cast<int64_t>(random() % 9) - 4;
      const Dim operand = random() % 2 ? kSeq : Dim(constant);
      const Dim bound = operand.bind(bindings);
      switch (random() % 4) {
        case 0: symbolic = symbolic + operand, number = number + bound; break;
        case 1: symbolic = symbolic - operand, number = number - bound; break;
        case 2: symbolic = max(symbolic, operand), number = max(number, bound); break;
        case 3:
          symbolic = floor_div(symbolic, constant == 0 ? 2 : constant), number = floor_div(number, constant == 0 ? 2 : constant);
          break;
      }
    }
    EXPECT_EQ(symbolic.bind(bindings), number) << symbolic.str();
  }
}

TEST(Dim, SaturatesInsteadOfWrapping) {
  const Dim most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(most + 1, most);
  EXPECT_EQ(most * most, most);
  EXPECT_EQ((most * -2) * 2, Dim(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(floor_div(Dim(std::numeric_limits<int64_t>::min()), -1), most);
}

TEST(Dim, StaysSmallWhenSquaredAgainAndAgain) {
  Dim dim = kN + kSeq;
  for (int i = 0; i < 60; ++i) dim = dim * dim;
  EXPECT_FALSE(dim.known());
  EXPECT_LT(dim.str().size(), 10000U);
  for (int i = 0; i < 200; ++i) dim = floor_div(dim, kN + i) + max(dim, kSeq * i - 3);
  EXPECT_LT(dim.str().size(), 10000U);
}

}  // namespace
}  // namespace serin::graph
