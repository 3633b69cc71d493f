// What each element function answers at its edges: the promises at the top of kernels/functors.h.

#include "kernels/functors.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/kernels/harness.h"

namespace serin::kernels::test {
namespace {

constexpr int32_t kIntMin = std::numeric_limits<int32_t>::min();
constexpr int32_t kIntMax = std::numeric_limits<int32_t>::max();
constexpr int64_t kLongMin = std::numeric_limits<int64_t>::min();

float unary_f(UnaryFn fn, float x, float alpha = 0.f, float beta = 0.f) { return unary(fn, x, alpha, beta); }

TEST(Functors, MinAndMaxPropagateNanFromEitherSide) {
  for (const BinaryFn fn : {BinaryFn::kMin, BinaryFn::kMax}) {
    EXPECT_TRUE(std::isnan(binary(fn, kNan, 1.f)));
    EXPECT_TRUE(std::isnan(binary(fn, 1.f, kNan)));
  }
  EXPECT_EQ(binary(BinaryFn::kMin, -kInf, 3.f), -kInf);
  EXPECT_EQ(binary(BinaryFn::kMax, -3, 2), 2);
}

TEST(Functors, ReluAndClipKeepNanAndReluKeepsNegativeZero) {
  EXPECT_TRUE(std::isnan(unary_f(UnaryFn::kRelu, kNan)));
  EXPECT_TRUE(std::isnan(unary_f(UnaryFn::kClip, kNan, 0.f, 6.f)));
  EXPECT_TRUE(std::signbit(unary_f(UnaryFn::kRelu, -0.f)));
  EXPECT_EQ(unary_f(UnaryFn::kClip, -kInf, 0.f, 6.f), 0.f);
  EXPECT_EQ(unary_f(UnaryFn::kClip, 7.f, 0.f, 6.f), 6.f);
  EXPECT_EQ(unary(UnaryFn::kClip, int64_t{5}, -kInf, kInf), 5);  // bounds saturate to those of the type
}

TEST(Functors, IntegerDivisionTruncatesAndNeverTraps) {
  EXPECT_EQ(binary(BinaryFn::kDiv, -7, 2), -3);
  EXPECT_EQ(binary(BinaryFn::kDiv, 7, 0), 0);
  EXPECT_EQ(binary(BinaryFn::kDiv, kIntMin, -1), kIntMin);
  EXPECT_EQ(binary(BinaryFn::kDiv, kLongMin, int64_t{-1}), kLongMin);
  EXPECT_EQ(binary(BinaryFn::kDiv, uint8_t{200}, uint8_t{0}), 0);
  EXPECT_EQ(binary(BinaryFn::kDiv, 1.f, 0.f), kInf);
}

TEST(Functors, ModFollowsTheDivisorAndFModTheDividend) {
  EXPECT_EQ(binary(BinaryFn::kMod, -7, 3), 2);
  EXPECT_EQ(binary(BinaryFn::kMod, 7, -3), -2);
  EXPECT_EQ(binary(BinaryFn::kFMod, -7, 3), -1);
  EXPECT_EQ(binary(BinaryFn::kFMod, 7, -3), 1);
  EXPECT_NEAR(binary(BinaryFn::kMod, -5.3f, 2.f), 0.7f, 1e-6);
  EXPECT_NEAR(binary(BinaryFn::kFMod, -5.3f, 2.f), -1.3f, 1e-6);
  for (const BinaryFn fn : {BinaryFn::kMod, BinaryFn::kFMod}) {
    EXPECT_EQ(binary(fn, 7, 0), 0);
    EXPECT_EQ(binary(fn, kIntMin, -1), 0);
  }
}

TEST(Functors, IntegersWrap) {
  EXPECT_EQ(binary(BinaryFn::kAdd, kIntMax, 1), kIntMin);
  EXPECT_EQ(binary(BinaryFn::kMul, kLongMin, int64_t{-1}), kLongMin);
  EXPECT_EQ(binary(BinaryFn::kSub, uint8_t{0}, uint8_t{1}), 255);
  EXPECT_EQ(binary(BinaryFn::kMul, uint16_t{65535}, uint16_t{65535}), 1);  // would overflow int after promotion
  EXPECT_EQ(unary(UnaryFn::kNeg, kIntMin, 0.f, 0.f), kIntMin);
  EXPECT_EQ(unary(UnaryFn::kAbs, int8_t{-128}, 0.f, 0.f), int8_t{-128});
}

TEST(Functors, IntegerPowers) {
  EXPECT_EQ(binary(BinaryFn::kPow, 3, 4), 81);
  EXPECT_EQ(binary(BinaryFn::kPow, -2, 3), -8);
  EXPECT_EQ(binary(BinaryFn::kPow, 0, 0), 1);
  EXPECT_EQ(binary(BinaryFn::kPow, 2, 64), 0);  // wraps
  EXPECT_EQ(binary(BinaryFn::kPow, 1, -5), 1);
  EXPECT_EQ(binary(BinaryFn::kPow, -1, -5), -1);
  EXPECT_EQ(binary(BinaryFn::kPow, -1, -4), 1);
  EXPECT_EQ(binary(BinaryFn::kPow, 2, -1), 0);
  EXPECT_EQ(binary(BinaryFn::kPow, 0, -1), 0);
}

TEST(Functors, RoundsHalfToEven) {
  EXPECT_EQ(unary_f(UnaryFn::kRound, 0.5f), 0.f);
  EXPECT_EQ(unary_f(UnaryFn::kRound, 1.5f), 2.f);
  EXPECT_EQ(unary_f(UnaryFn::kRound, 2.5f), 2.f);
  EXPECT_EQ(unary_f(UnaryFn::kRound, -2.5f), -2.f);
  EXPECT_TRUE(std::signbit(unary_f(UnaryFn::kRound, -0.3f)));
}

TEST(Functors, SignKeepsNanAndZero) {
  EXPECT_TRUE(std::isnan(unary_f(UnaryFn::kSign, kNan)));
  EXPECT_EQ(unary_f(UnaryFn::kSign, -kInf), -1.f);
  EXPECT_EQ(unary(UnaryFn::kSign, uint8_t{200}, 0.f, 0.f), 1);
}

TEST(Functors, ActivationsAtTheEndsOfTheRange) {
  EXPECT_EQ(unary_f(UnaryFn::kSigmoid, -1000.f), 0.f);
  EXPECT_EQ(unary_f(UnaryFn::kSigmoid, 1000.f), 1.f);
  EXPECT_EQ(unary_f(UnaryFn::kSoftplus, 1000.f), 1000.f);
  EXPECT_EQ(unary_f(UnaryFn::kSoftplus, -1000.f), 0.f);
  EXPECT_EQ(unary_f(UnaryFn::kElu, -1000.f, 2.f), -2.f);
  EXPECT_EQ(unary_f(UnaryFn::kHardSwish, -4.f), 0.f);
  EXPECT_EQ(unary_f(UnaryFn::kHardSwish, 4.f), 4.f);
  EXPECT_EQ(unary_f(UnaryFn::kHardSigmoid, 1.f, 0.2f, 0.5f), 0.7f);
  EXPECT_NEAR(unary_f(UnaryFn::kGelu, -5.f), -1.4332578e-06, 1e-12);  // 1 + erf would have cancelled
  EXPECT_NEAR(unary_f(UnaryFn::kErf, 0.5f), 0.5204998778, 1e-7);
  EXPECT_NEAR(unary_f(UnaryFn::kGeluTanh, 1.f), 0.8411919906, 1e-7);
}

TEST(Functors, Predicates) {
  EXPECT_TRUE(unary_predicate(UnaryFn::kIsNaN, kNan, 0.f));
  EXPECT_TRUE(unary_predicate(UnaryFn::kIsInf, -kInf, 0.f));
  EXPECT_FALSE(unary_predicate(UnaryFn::kIsInf, -kInf, 1.f));
  EXPECT_TRUE(unary_predicate(UnaryFn::kIsInf, -kInf, -1.f));
  EXPECT_TRUE(unary_predicate(UnaryFn::kNot, false, 0.f));
  EXPECT_FALSE(binary_predicate(BinaryFn::kEqual, kNan, kNan));
  EXPECT_FALSE(binary_predicate(BinaryFn::kGreaterOrEqual, kNan, 0.f));
  EXPECT_TRUE(binary_predicate(BinaryFn::kXor, true, false));
}

TEST(Cast, FloatToIntegerTruncatesAndSaturates) {
  EXPECT_EQ(cast<int32_t>(-1.9f), -1);
  EXPECT_EQ(cast<int32_t>(kNan), 0);
  EXPECT_EQ(cast<int32_t>(kInf), kIntMax);
  EXPECT_EQ(cast<int32_t>(2147483648.f), kIntMax);
  EXPECT_EQ(cast<int32_t>(-3e9f), kIntMin);
  EXPECT_EQ(cast<uint8_t>(-1.f), 0);
  EXPECT_EQ(cast<uint8_t>(300.0), 255);
  EXPECT_EQ(cast<int64_t>(1e300), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(cast<uint64_t>(18446744073709551616.f), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(cast<int8_t>(to_half(127.9f)), 127);
}

TEST(Cast, IntegersWrapAndBoolIsNotZero) {
  EXPECT_EQ(cast<uint8_t>(257), 1);
  EXPECT_EQ(cast<int8_t>(int64_t{200}), -56);
  EXPECT_TRUE(cast<bool>(256));
  EXPECT_TRUE(cast<bool>(kNan));
  EXPECT_FALSE(cast<bool>(-0.f));
  EXPECT_EQ(cast<float>(true), 1.f);
}

TEST(Float16, EveryValueSurvivesTheWayThroughFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half{static_cast<uint16_t>(bits)};
    const BFloat16 brain{static_cast<uint16_t>(bits)};
    if (std::isnan(to_float(half)))
      EXPECT_TRUE(std::isnan(to_float(to_half(to_float(half))))) << bits;
    else
      EXPECT_EQ(to_half(to_float(half)).bits, bits);
    if (std::isnan(to_float(brain)))
      EXPECT_TRUE(std::isnan(to_float(to_bfloat16(to_float(brain))))) << bits;
    else
      EXPECT_EQ(to_bfloat16(to_float(brain)).bits, bits);
  }
}

TEST(Float16, KnownValues) {
  EXPECT_EQ(to_float(Half{0x3c00}), 1.f);
  EXPECT_EQ(to_float(Half{0x7bff}), 65504.f);
  EXPECT_EQ(to_float(Half{0x0001}), 0x1p-24f);
  EXPECT_EQ(to_float(Half{0xfc00}), -kInf);
  EXPECT_EQ(to_float(BFloat16{0x3f80}), 1.f);
}

TEST(Float16, RoundsToNearestEven) {
  EXPECT_EQ(to_half(1.f + 0x1p-11f).bits, 0x3c00);             // a tie: to even
  EXPECT_EQ(to_half(1.f + 0x1p-10f + 0x1p-11f).bits, 0x3c02);  // the next tie: up
  EXPECT_EQ(to_half(1.f + 0x1p-11f + 0x1p-20f).bits, 0x3c01);
  EXPECT_EQ(to_half(65519.f).bits, 0x7bff);
  EXPECT_EQ(to_half(65520.f).bits, 0x7c00);
  EXPECT_EQ(to_half(0x1p-25f).bits, 0);  // half of the smallest: a tie with zero
  EXPECT_EQ(to_half(-0x1.8p-25f).bits, 0x8001);
  EXPECT_EQ(to_half(0x1.ff8p-15f).bits, 0x03ff);  // the largest subnormal
  EXPECT_EQ(to_bfloat16(1.f + 0x1p-8f).bits, 0x3f80);
  EXPECT_EQ(to_bfloat16(1.f + 0x1p-7f + 0x1p-8f).bits, 0x3f82);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
}

TEST(Float16, DoubleIsRoundedOnce) {
  const double just_above_a_tie = 1.0 + 0x1p-11 + 0x1p-40;  // float would round it onto the tie, and the tie down
  EXPECT_EQ(to_half(just_above_a_tie).bits, 0x3c01);
  EXPECT_EQ(to_bfloat16(1.0 + 0x1p-8 + 0x1p-40).bits, 0x3f81);
  EXPECT_EQ(cast<BFloat16>((1 << 30) + (1 << 22) + 1).bits, to_bfloat16(0x1.02p30f).bits);
}

}  // namespace
}  // namespace serin::kernels::test
