// Programs of functions (kernels::Pointwise): the vector kernel against the reference, on every instruction set that this machine has, over the ways in which
// inputs lie; and what both refuse.

#include <gtest/gtest.h>

#include "kernels/cpu/parallel.h"
#include "tests/kernels/every_isa.h"

namespace serin::kernels::test {
namespace {

using Step = Pointwise::Step;

class PointwiseKernels : public EveryIsa {
 protected:
  void expect_match(Pointwise program, std::vector<Tensor> inputs, const Shape& y) {
    expect_rows_match_reference(backend(GetParam()), {.op = std::move(program), .inputs = std::move(inputs), .outputs = {{kF32, y}}});
  }
};
SERIN_ON_EVERY_ISA(PointwiseKernels);

/// min(max(a * b + c, c), 2) where a < b, else a.
Pointwise example() {
  return {{{Binary{BinaryFn::kMul}, {0, 1}},
           {Binary{BinaryFn::kAdd}, {3, 2}},
           {Binary{BinaryFn::kMax}, {4, 2}},
           {Unary{UnaryFn::kClip, -9.f, 2.f}, {5}},
           {Binary{BinaryFn::kLess}, {0, 1}},
           {Select{}, {7, 6, 0}}}};
}

TEST_P(PointwiseKernels, InputsOfTheSameShapeOfEverySize) {
  for (const int64_t n : {0, 1, 3, 16, 17, 255, 1023, 1024, 1025, 5000})
    expect_match(example(), {random_tensor({n}, 1), random_tensor({n}, 2), random_tensor({n}, 3)}, {n});
}

TEST_P(PointwiseKernels, InputsThatAreBroadcast) {
  const struct {
    Shape b, c, y;
  } forms[] = {
      {{}, {1, 1}, {40, 300}},                           // numbers
      {{300}, {40, 1}, {40, 300}},                       // a row, a column
      {{7}, {500, 1}, {500, 7}},                         // of short rows
      {{1, 5, 1, 1}, {5, 1, 1}, {3, 5, 7, 9}},           // channels of small images
      {{2, 3, 1, 1, 16}, {16}, {2, 3, 50, 4, 16}},       // channels in blocks
      {{4, 1, 1, 3000}, {4, 2, 1, 1}, {4, 2, 3, 3000}},  // long rows
      {{2, 1, 3, 1}, {1, 9, 1, 2}, {2, 9, 3, 2}},        // every other axis
      {{3, 1}, {1}, {3, 0}},                             // nothing
  };
  for (const auto& form : forms)
    expect_match(example(), {random_tensor(form.y, 1), random_tensor(form.b, 2), random_tensor(form.c, 3)}, form.y);
  // The result may be larger than every input.
  expect_match(example(), {random_tensor({40, 1}, 1), random_tensor({1, 50}, 2), random_tensor({1}, 3)}, {40, 50});
}

TEST_P(PointwiseKernels, ConditionsAreInputs) {
  const Pointwise program{{{Unary{UnaryFn::kNeg}, {1}}, {Select{}, {0, 1, 2}}}};
  for (const Shape& condition : {Shape{60, 70}, Shape{70}, Shape{60, 1}, Shape{}})
    expect_match(program, {random_integers(DType::kBool, condition, 1), random_tensor({60, 70}, 2)}, {60, 70});
}

TEST_P(PointwiseKernels, SpecialValuesGoThrough) {
  expect_match(example(), {special_values({7, 1, 29}), special_values({1, 13, 29}), special_values({29})}, {7, 13, 29});
  expect_match({{{Unary{UnaryFn::kRelu}, {0}}, {Unary{UnaryFn::kSigmoid}, {1}}, {Binary{BinaryFn::kMul}, {0, 2}}}}, {special_values({999})},
               {999});
}

TEST_P(PointwiseKernels, AFunctionOfOneNumberFillsTheTile) {
  expect_match({{{Unary{UnaryFn::kExp}, {1}}, {Binary{BinaryFn::kSub}, {0, 2}}}}, {random_tensor({33, 65}, 1), random_tensor({1}, 2)},
               {33, 65});
}

TEST_P(PointwiseKernels, TwoThreadsGiveTheSameBits) {
  const Shape y{3, 70, 50, 16};
  const Case c{
      .op = example(), .inputs = {random_tensor(y, 1), random_tensor({3, 70, 1, 16}, 2), random_tensor({16}, 3)}, .outputs = {{kF32, y}}};
  PackedWeights weights;
  Workers workers(2);
  std::vector<float> results[2];
  for (const int threads : {1, 2}) {
    PrepareContext context{&weights, threads};
    const Prepared prepared = backend(GetParam()).prepare(c.describe(), context);
    std::vector<std::byte> scratch(prepared.kernel->scratch_bytes() + 64);
    Stream stream{scratch.data(), threads == 1 ? nullptr : &workers};
    Tensor out(kF32, y);
    std::vector<TensorView> in, to = {out.view()};
    for (const Tensor& tensor : c.inputs) in.push_back(tensor.view());
    ASSERT_FALSE(prepared.kernel->run(stream, in, to));
    results[threads - 1] = out.values<float>();
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(PointwiseChecks, WhatIsNotAProgramIsRefused) {
  const Tensor x = random_tensor({4}, 1);
  const auto refuses = [](Pointwise program, std::vector<Tensor> inputs, const Shape& y) {
    PackedWeights weights;
    PrepareContext context{&weights};
    const Case c{.op = std::move(program), .inputs = std::move(inputs), .outputs = {{kF32, y}}};
    return backend(Isa::kScalar).prepare(c.describe(), context).kernel == nullptr;
  };
  EXPECT_FALSE(refuses({{{Unary{UnaryFn::kAbs}, {0}}}}, {x}, {4}));
  EXPECT_TRUE(refuses({}, {x}, {4})) << "no step";
  EXPECT_TRUE(refuses({{{Unary{UnaryFn::kAbs}, {1}}}}, {x}, {4})) << "a step that reads itself";
  EXPECT_TRUE(refuses({{{Unary{UnaryFn::kAbs}, {-1}}}}, {x}, {4})) << "no operand";
  EXPECT_TRUE(refuses({{{Unary{UnaryFn::kAbs}, {0}}}}, {x}, {3})) << "another shape";
  EXPECT_TRUE(refuses({{{Unary{UnaryFn::kIsNaN}, {0}}}}, {x}, {4})) << "answers bool";
  EXPECT_TRUE(refuses({{{Binary{BinaryFn::kLess}, {0, 0}}}}, {x}, {4})) << "a condition as the result";
  EXPECT_TRUE(refuses({{{Select{}, {0, 0, 0}}}}, {x}, {4})) << "a float as a condition";
  EXPECT_TRUE(refuses({std::vector<Step>(Pointwise::kMaxSteps + 1, {Unary{UnaryFn::kAbs}, {0}})}, {x}, {4})) << "too long";
  EXPECT_TRUE(refuses({{{Unary{UnaryFn::kAbs}, {0}}}}, std::vector<Tensor>(Pointwise::kMaxInputs + 1, x), {4})) << "too wide";
}

}  // namespace
}  // namespace serin::kernels::test
