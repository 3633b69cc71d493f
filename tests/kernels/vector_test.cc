// Every vector kernel against the reference, on every instruction set that this machine has, over shapes chosen for their tails: 0, 1, one less and
// one more than a vector, and several of them.

#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/every_isa.h"

namespace serin::kernels::test {
namespace {

constexpr int64_t kSizes[] = {0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 130, 1000};

class Vector : public EveryIsa {};
SERIN_ON_EVERY_ISA(Vector);

struct NamedUnary {
  UnaryFn fn;
  float alpha = 0.f, beta = 0.f;
  bool from_ref = false;  ///< no vector code, on purpose
};

TEST_P(Vector, Unary) {
  const NamedUnary functions[] = {{UnaryFn::kIdentity},
                                  {UnaryFn::kAbs},
                                  {UnaryFn::kNeg},
                                  {UnaryFn::kReciprocal},
                                  {UnaryFn::kSqrt},
                                  {UnaryFn::kExp},
                                  {UnaryFn::kLog},
                                  {UnaryFn::kErf},
                                  {UnaryFn::kSign},
                                  {UnaryFn::kSin},
                                  {UnaryFn::kCos},
                                  {UnaryFn::kTan},
                                  {UnaryFn::kAsin},
                                  {UnaryFn::kAcos},
                                  {UnaryFn::kAtan},
                                  {UnaryFn::kSinh},
                                  {UnaryFn::kCosh},
                                  {UnaryFn::kAsinh},
                                  {UnaryFn::kAcosh},
                                  {UnaryFn::kAtanh},
                                  {UnaryFn::kTanh},
                                  {UnaryFn::kSigmoid},
                                  {UnaryFn::kRelu},
                                  {UnaryFn::kSoftplus},
                                  {UnaryFn::kLeakyRelu, 0.1f},
                                  {UnaryFn::kClip, -0.5f, 2.f},
                                  {UnaryFn::kElu, 1.5f},
                                  {UnaryFn::kSelu, 1.6f, 1.05f},
                                  {UnaryFn::kCelu, 0.5f},
                                  {UnaryFn::kThresholdedRelu, 0.7f},
                                  {UnaryFn::kSoftsign},
                                  {UnaryFn::kMish},
                                  {UnaryFn::kHardSwish},
                                  {UnaryFn::kSilu},
                                  {UnaryFn::kGelu},
                                  {UnaryFn::kGeluTanh},
                                  {UnaryFn::kHardSigmoid, 0.2f, 0.5f},
                                  {UnaryFn::kFloor},
                                  {UnaryFn::kCeil},
                                  {UnaryFn::kRound}};
  for (const NamedUnary& f : functions) {
    const auto check = [&](Tensor x) {
      const Shape shape = x.shape();
      const Case c{.op = Unary{f.fn, f.alpha, f.beta}, .inputs = {std::move(x)}, .outputs = {{kF32, shape}}};
      SCOPED_TRACE("function " + std::to_string(static_cast<int>(f.fn)));
      expect_rows_match_reference(backend(GetParam()), c, {}, f.from_ref);
    };
    for (const int64_t n : kSizes) check(random_tensor({n}, 1, 3.f));
    check(special_values({5, 77}));
    check(random_tensor({4000}, 2, 30.f));
    check(random_tensor({4000}, 3, 0.01f));
  }
}

TEST_P(Vector, BinarySameShapeOfEverySize) {
  for (int fn = 0; fn <= static_cast<int>(BinaryFn::kGreaterOrEqual); ++fn) {
    const auto op = static_cast<BinaryFn>(fn);
    const bool from_ref = op == BinaryFn::kMod || op == BinaryFn::kFMod;
    const DType y = is_compare(op) ? DType::kBool : kF32;
    for (const int64_t n : kSizes) {
      const Case c{.op = Binary{op}, .inputs = {random_tensor({n}, 1), random_tensor({n}, 2)}, .outputs = {{y, {n}}}};
      expect_rows_match_reference(backend(GetParam()), c, {}, from_ref);
    }
    const Case special{
        .op = Binary{op}, .inputs = {special_values({7, 1, 29}), special_values({1, 13, 29})}, .outputs = {{y, {7, 13, 29}}}};
    expect_rows_match_reference(backend(GetParam()), special, {}, from_ref);
  }
}

TEST_P(Vector, BinaryBroadcasts) {
  const struct {
    Shape a, b, y;
  } forms[] = {
      {{4, 37}, {}, {4, 37}},                        // a scalar
      {{}, {4, 37}, {4, 37}},                        //
      {{4, 37}, {37}, {4, 37}},                      // a row
      {{4, 37}, {4, 1}, {4, 37}},                    // a column
      {{4, 1}, {1, 37}, {4, 37}},                    // an outer product
      {{2, 5, 3, 11}, {1, 5, 1, 1}, {2, 5, 3, 11}},  // a channel
      {{2, 5, 3, 11}, {2, 1, 3, 1}, {2, 5, 3, 11}},  // what SE blocks and masks do
      {{2, 1, 4, 1, 3}, {5, 1, 2, 1}, {2, 5, 4, 2, 3}},
      {{3, 0, 2}, {2}, {3, 0, 2}},
      {{1, 1, 1}, {1}, {1, 1, 1}},
  };
  for (const auto& form : forms) {
    for (const BinaryFn fn : {BinaryFn::kSub, BinaryFn::kMax, BinaryFn::kLess}) {
      const DType y = is_compare(fn) ? DType::kBool : kF32;
      const Case c{.op = Binary{fn}, .inputs = {random_tensor(form.a, 1), random_tensor(form.b, 2)}, .outputs = {{y, form.y}}};
      expect_match(c);
    }
  }
}

TEST_P(Vector, ShapesSmallerThanTheBoundAreReadAtRunTime) {
  expect_match({.op = Binary{BinaryFn::kAdd},
                .inputs = {random_tensor({3, 17}, 1), random_tensor({3, 17}, 2)},
                .outputs = {{kF32, {3, 17}}},
                .bound = 5});
  expect_match({.op = Softmax{-1}, .inputs = {random_tensor({3, 17}, 1)}, .outputs = {{kF32, {3, 17}}}, .bound = 5});
  expect_match({.op = Reduce{ReduceFn::kSum, {1}}, .inputs = {random_tensor({3, 17}, 1)}, .outputs = {{kF32, {3}}}, .bound = 5},
               {1e-5, 1e-5});
  expect_match({.op = StridedCopy{0, {1, 17}}, .inputs = {random_tensor({3, 17}, 1)}, .outputs = {{kF32, {5, 3}}}, .bound = 4});
}

TEST_P(Vector, Softmax) {
  for (const int64_t n : kSizes) {
    for (const bool log : {false, true}) {
      expect_match({.op = Softmax{-1, log}, .inputs = {random_tensor({5, n}, 1, 4.f)}, .outputs = {{kF32, {5, n}}}},
                   {1e-5, log ? 1e-6 : 0});
    }
  }
  expect_match({.op = Softmax{1}, .inputs = {special_values({30, 40})}, .outputs = {{kF32, {30, 40}}}});
  expect_match({.op = Softmax{-1}, .inputs = {Tensor({2, 2}, std::vector<float>{1e4f, 1e4f, -1e4f, 1e4f})}, .outputs = {{kF32, {2, 2}}}});
}

TEST_P(Vector, MaskedElementsOfASoftmaxAre0AndThoseNearThemAreSubnormal) {
  Tensor x = random_tensor({3, 40}, 1);
  const auto values = x.view().span<float>();
  const float masks[] = {-1e4f, -100.f, -std::numeric_limits<float>::infinity(), -3.4e38f, -90.f, -112.f, -360.f, -355.f};
  for (size_t i = 0; i < values.size(); i += 3) values[i] = masks[i / 3 % std::size(masks)];
  for (const bool log : {false, true})
    for (const int64_t axis : {int64_t{0}, int64_t{1}})
      expect_match({.op = Softmax{axis, log}, .inputs = {x}, .outputs = {{kF32, {3, 40}}}}, {1e-5, log ? 1e-6 : 0});
  for (const UnaryFn fn : {UnaryFn::kExp, UnaryFn::kSigmoid, UnaryFn::kSilu, UnaryFn::kTanh})
    expect_match({.op = Unary{fn}, .inputs = {x}, .outputs = {{kF32, {3, 40}}}}, {1e-5, 0});
}

TEST_P(Vector, LayerNorm) {
  for (const int64_t n : {1, 5, 16, 33, 768}) {
    for (const bool bias : {false, true}) {
      Case c{.op = LayerNorm{-1, 1e-5f, bias}, .inputs = {random_tensor({6, n}, 1), random_tensor({n}, 2)}, .outputs = {{kF32, {6, n}}}};
      if (bias) c.inputs.push_back(random_tensor({n}, 3));
      expect_match(c, {1e-5, 1e-6});
    }
  }
  expect_match({.op = LayerNorm{1}, .inputs = {random_tensor({2, 3, 7}, 1), random_tensor({3, 7}, 2)}, .outputs = {{kF32, {2, 3, 7}}}},
               {1e-5, 1e-6});
}

TEST_P(Vector, BatchNorm) {
  Tensor variance = random_tensor({5}, 6);
  for (float& v : variance.view().span<float>()) v = v * v + 0.1f;
  const Shape shape{3, 5, 4, 9};
  expect_match({.op = BatchNorm{},
                .inputs = {random_tensor(shape, 1), random_tensor({5}, 2), random_tensor({5}, 3), random_tensor({5}, 4), variance},
                .outputs = {{kF32, shape}}},
               {1e-5, 1e-6});
}

TEST_P(Vector, Reduce) {
  for (int fn = 0; fn <= static_cast<int>(ReduceFn::kSumSquare); ++fn) {
    const auto op = static_cast<ReduceFn>(fn);
    // Sums of values of both signs cancel: measured against the largest result.
    const Tolerance tolerance{1e-5, 1e-6};
    for (const int64_t n : kSizes) {
      if (op == ReduceFn::kProd && n > 100) continue;
      expect_match({.op = Reduce{op, {1}}, .inputs = {random_tensor({3, n}, 1)}, .outputs = {{kF32, {3}}}}, tolerance);
      expect_match({.op = Reduce{op, {0}}, .inputs = {random_tensor({7, n}, 1)}, .outputs = {{kF32, {n}}}}, tolerance);
    }
    expect_match({.op = Reduce{op, {1, 2}}, .inputs = {random_tensor({2, 3, 5, 7}, 1)}, .outputs = {{kF32, {2, 1, 1, 7}}}}, tolerance);
    if (op != ReduceFn::kMax && op != ReduceFn::kMin) continue;  // others overflow in float where the reference, in double, does not
    expect_match({.op = Reduce{op, {1}}, .inputs = {special_values({40, 30})}, .outputs = {{kF32, {40}}}}, {0, 0});
    expect_match({.op = Reduce{op, {0}}, .inputs = {special_values({40, 30})}, .outputs = {{kF32, {30}}}}, {0, 0});
  }
}

TEST_P(Vector, ReduceOfIntegers) {
  for (const ReduceFn fn : {ReduceFn::kMax, ReduceFn::kMin}) {
    for (const DType dtype : {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16, DType::kInt32, DType::kInt64}) {
      const int low = dtype == DType::kUInt8 || dtype == DType::kUInt16 ? 0 : -120;
      const auto check = [&](const std::vector<int64_t>& axes, const Shape& x, const Shape& y) {
        expect_match({.op = Reduce{fn, axes}, .inputs = {random_integers(dtype, x, 1, low, 120)}, .outputs = {{dtype, y}}}, {0, 0});
      };
      for (const int64_t n : kSizes) {
        check({1}, {3, n}, {3});
        check({0}, {7, n}, {n});
      }
      check({1}, {2, 0}, {2});
      check({2, 1}, {2, 3, 5, 7}, {2, 7});
      check({0, 1, 2}, {4, 5, 6}, {1, 1, 1});
    }
  }
}

TEST_P(Vector, ReduceOfNanAndInfinity) {
  const Tensor x({3, 3}, std::vector<float>{1, kNan, 2, kInf, 1, 2, kInf, 1, -kInf});
  for (int fn = 0; fn <= static_cast<int>(ReduceFn::kSumSquare); ++fn) {
    expect_match({.op = Reduce{static_cast<ReduceFn>(fn), {1}}, .inputs = {x}, .outputs = {{kF32, {3}}}}, {0, 0});
    expect_match({.op = Reduce{static_cast<ReduceFn>(fn), {0}}, .inputs = {x}, .outputs = {{kF32, {3}}}}, {1e-6, 0});
  }
}

TEST_P(Vector, Pool) {
  const struct {
    std::vector<int64_t> kernel, strides, dilations, pads;
    Shape x, y;
  } forms[] = {
      {{2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}, {2, 3, 8, 10}, {2, 3, 4, 5}},
      {{3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, {1, 2, 9, 21}, {1, 2, 9, 21}},
      {{3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, {1, 2, 33, 67}, {1, 2, 17, 34}},
      {{3, 2}, {1, 3}, {2, 1}, {2, 0, 2, 1}, {1, 1, 7, 40}, {1, 1, 7, 14}},
      {{3, 3}, {2, 2}, {1, 1}, {0, 0, 0, 0}, {1, 1, 6, 6}, {1, 1, 3, 3}},  // rounded up: windows reach past the input
      {{5}, {1}, {1}, {2, 2}, {2, 2, 30}, {2, 2, 30}},
      {{7, 7}, {1, 1}, {1, 1}, {0, 0, 0, 0}, {2, 3, 7, 7}, {2, 3, 1, 1}},
      {{2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}, {3, 13, 8, 8}, {3, 13, 4, 4}},  // more planes than are taken at a time
      {{3, 3}, {1, 2}, {1, 2}, {1, 2, 1, 2}, {1, 6, 5, 131}, {1, 6, 5, 66}},
  };
  for (const auto& form : forms) {
    for (const int mode : {0, 1, 2}) {
      const Pool op{.average = mode > 0,
                    .count_include_pad = mode > 1,
                    .kernel = form.kernel,
                    .strides = form.strides,
                    .dilations = form.dilations,
                    .pads = form.pads};
      expect_match({.op = op, .inputs = {random_tensor(form.x, 1)}, .outputs = {{kF32, form.y}}}, {1e-5, 1e-6});
      expect_match({.op = op, .inputs = {special_values(form.x)}, .outputs = {{kF32, form.y}}}, {1e-5, 1e-6});
    }
  }
}

TEST_P(Vector, PoolOfBytes) {
  const struct {
    std::vector<int64_t> kernel, strides, dilations, pads;
    Shape x, y;
  } forms[] = {
      {{2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}, {2, 3, 8, 70}, {2, 3, 4, 35}},
      {{3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, {1, 2, 9, 67}, {1, 2, 9, 67}},
      {{3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, {1, 2, 33, 67}, {1, 2, 17, 34}},
      {{3, 2}, {1, 3}, {2, 1}, {2, 0, 2, 1}, {1, 1, 7, 40}, {1, 1, 7, 14}},
      {{3, 3}, {2, 2}, {1, 1}, {0, 0, 0, 0}, {1, 1, 6, 6}, {1, 1, 3, 3}},  // rounded up: windows reach past the input
      {{2, 2}, {1, 1}, {1, 5}, {1, 3, 1, 3}, {1, 2, 3, 1}, {1, 2, 4, 2}},  // windows without a cell inside
      {{5}, {1}, {1}, {2, 2}, {2, 2, 30}, {2, 2, 30}},
  };
  for (const auto& form : forms) {
    const Pool op{.kernel = form.kernel, .strides = form.strides, .dilations = form.dilations, .pads = form.pads};
    expect_match({.op = op, .inputs = {random_integers(DType::kInt8, form.x, 1, -128, 127)}, .outputs = {{DType::kInt8, form.y}}}, {0, 0});
    expect_match({.op = op, .inputs = {random_integers(DType::kUInt8, form.x, 2, 0, 255)}, .outputs = {{DType::kUInt8, form.y}}}, {0, 0});
  }
}

TEST_P(Vector, Cast) {
  const DType others[] = {DType::kBool, DType::kInt8, DType::kUInt8, DType::kInt32, DType::kFloat16, DType::kBFloat16};
  for (const int64_t n : kSizes) {
    for (const DType other : others) {
      // Every small integer is exact in every one of these types, so no tolerance.
      expect_match({.op = Cast{}, .inputs = {random_integers(other, {n}, 1)}, .outputs = {{kF32, {n}}}}, {0, 0});
    }
    for (const DType other : {DType::kInt32, DType::kFloat16, DType::kBFloat16}) {
      const bool from_ref = other == DType::kFloat16 && GetParam() == Isa::kScalar;
      const Case c{.op = Cast{}, .inputs = {special_values({n})}, .outputs = {{other, {n}}}};
      expect_rows_match_reference(backend(GetParam()), c, {0, 0}, from_ref);
    }
    for (const DType other : {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16}) {
      expect_match({.op = Cast{}, .inputs = {special_values({n})}, .outputs = {{other, {n}}}}, {0, 0});
      expect_match({.op = Cast{}, .inputs = {random_tensor({n}, 1, 200.f)}, .outputs = {{other, {n}}}}, {0, 0});
    }
  }
  Tensor every_half(DType::kFloat16, {65536});
  for (uint32_t i = 0; i < 65536; ++i) every_half.view().as<uint16_t>()[i] = static_cast<uint16_t>(i);
  expect_match({.op = Cast{}, .inputs = {every_half}, .outputs = {{kF32, {65536}}}}, {0, 0});
}

TEST_P(Vector, StridedCopy) {
  const struct {
    Shape x;
    StridedCopy op;
    Shape y;
  } forms[] = {
      {{40, 37}, {0, {1, 37}}, {37, 40}},                      // transpose
      {{2, 3, 17, 19}, {0, {969, 1, 57, 3}}, {2, 3, 17, 19}},  // some permutation
      {{2, 9, 3, 20}, {0, {540, 20, 60, 1}}, {2, 3, 9, 20}},   // heads to the front
      {{2, 9, 3, 20}, {0, {540, 20, 1, 60}}, {2, 3, 20, 9}},   // and transposed
      {{10, 10}, {11, {20, 2}}, {4, 4}},                       // slice with steps
      {{10, 10}, {99, {-10, -1}}, {10, 10}},                   // reversed
      {{5}, {0, {0, 1}}, {7, 5}},                              // expand
      {{5}, {0, {1, 0}}, {5, 7}},                              //
      {{1}, {0, {0, 0, 0}}, {2, 3, 4}},                        //
      {{3, 4}, {0, {4, 1}}, {0, 4}},                           // nothing
      {{3}, {2, {}}, {}},                                      // one element
  };
  for (const auto& form : forms) {
    for (const DType dtype : {DType::kUInt8, DType::kFloat16, kF32, DType::kInt64}) {
      expect_match({.op = form.op, .inputs = {random_integers(dtype, form.x, 1, 0, 200)}, .outputs = {{dtype, form.y}}}, {0, 0});
    }
  }
}

}  // namespace
}  // namespace serin::kernels::test
