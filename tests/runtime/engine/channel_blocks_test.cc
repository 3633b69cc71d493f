// The layout stage: which steps it puts into blocks, where it changes the layout, and that nothing else changes.

#include "runtime/engine/layout/channel_blocks.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "runtime/engine/plan.h"
#include "tests/runtime/engine/support.h"

namespace serin::engine {
namespace {

using test::best;
using test::model_of;
using test::random_tensor;
using test::Tensor;

int count(const Plan& plan, std::string_view kind) {
  return static_cast<int>(
      std::ranges::count_if(plan.program.steps, [kind](const Step& step) { return kernels::kOpNames[step.kernel.index()] == kind; }));
}

struct Expected {
  int layout_changes;
  int convolutions_in_blocks;
};

/// Runs the text with and without the stage, and with reference kernels: all must agree.
void expect_blocks(std::string_view text, const std::vector<Shape>& inputs, Expected expected) {
  if (best().channel_block() == 0) GTEST_SKIP() << "this backend wants plain tensors";
  std::vector<Tensor> tensors;
  for (const Shape& shape : inputs) tensors.push_back(random_tensor(shape, static_cast<uint32_t>(tensors.size() + 1)));
  const auto results = [&](const kernels::Backend& backend, LoadOptions options, Expected expect) {
    const auto model = model_of(text, backend, options);
    if (!model) return std::vector<Tensor>();
    auto executor = model->executor({});
    EXPECT_TRUE(executor) << executor.error().message;
    const Plan& plan = (*executor)->plan();
    EXPECT_EQ(count(plan, "ChannelBlocks"), expect.layout_changes);
    EXPECT_EQ(std::ranges::count_if(plan.program.steps,
                                    [&](const Step& step) {
                                      return std::holds_alternative<kernels::Conv>(step.kernel) &&
                                             plan.program.tensor(step.outputs[0]).shape.rank() == 5;
                                    }),
              expect.convolutions_in_blocks);
    return test::run(**executor, tensors);
  };
  const auto reference = results(test::reference(), {}, {0, 0});
  const auto blocked = results(best(), {}, expected);
  const auto plain = results(best(), {.disabled_passes = {std::string(kChannelBlocksPass)}}, {0, 0});
  ASSERT_EQ(blocked.size(), reference.size());
  for (size_t i = 0; i < reference.size(); ++i) {
    test::expect_near(blocked[i].view(), reference[i].view(), "in blocks");
    test::expect_near(plain[i].view(), reference[i].view(), "plain");
  }
}

TEST(ChannelBlocks, ARegionChangesLayoutOnlyAtItsEnd) {
  expect_blocks(R"(
    x: f32[2,3,12,12]
    a = Conv(x, w[24,3,3,3], pads=[1,1,1,1])
    b = Relu(a)
    c = MaxPool(b, kernel_shape=[2,2], strides=[2,2])
    d = Conv(c, v[24,24,1,1])
    e = Add(d, c)
    return e
  )",
                {{2, 3, 12, 12}}, {1, 2});
}

TEST(ChannelBlocks, SqueezeAndExcitationStaysInside) {
  expect_blocks(R"(
    x: f32[1,24,9,7]
    a = Conv(x, w[40,24,3,3], b[40], pads=[1,1,1,1])
    p = GlobalAveragePool(a)
    f = Conv(p, u[8,40,1,1])
    r = Relu(f)
    g = Conv(r, v[40,8,1,1])
    h = HardSigmoid(g)
    s = Mul(h, a)
    y = Conv(s, z[16,40,1,1])
    return y
  )",
                {{1, 24, 9, 7}}, {2, 4});  // in at x, out at y
}

TEST(ChannelBlocks, OnePixelIsTheSameInBothLayouts) {
  expect_blocks(R"(
    x: f32[2,3,8,8]
    a = Conv(x, w[64,3,3,3], strides=[2,2])
    p = GlobalAveragePool(a)
    f = Flatten(p)
    y = MatMul(f, m[64,10])
    return y
  )",
                {{2, 3, 8, 8}}, {0, 1});
}

TEST(ChannelBlocks, AFlattenedPixelBecomesAnImageAgain) {
  expect_blocks(R"(
    x: f32[2,3,8,8]
    a = Conv(x, w[64,3,3,3], strides=[2,2])
    p = GlobalAveragePool(a)
    f = Flatten(p)
    r = Reshape(f, k:i64[4]{-1,64,1,1})
    s = Conv(r, v[64,64,1,1])
    y = Mul(a, s)
    return y
  )",
                {{2, 3, 8, 8}}, {1, 2});
}

TEST(ChannelBlocks, WholeBlocksAreConcatenatedAndSplit) {
  expect_blocks(R"(
    x: f32[1,3,8,8]
    a = Conv(x, w[64,3,1,1])
    top, bottom = Split(a, axis=1)
    b = Conv(bottom, v[32,32,3,3], pads=[1,1,1,1])
    c = Concat(top, b, a, axis=1)
    y = Conv(c, u[16,128,1,1])
    g = GlobalAveragePool(y)
    f = Flatten(g)
    z = Neg(f)
    return z
  )",
                {{1, 3, 8, 8}}, {0, 3});
}

TEST(ChannelBlocks, SplitsOfSeveralImagesStayInside) {
  expect_blocks(R"(
    x: f32[3,3,8,8]
    a = Conv(x, w[64,3,1,1])
    top, bottom = Split(a, axis=1)
    s = Add(top, bottom)
    y = Conv(s, v[32,32,3,3], pads=[1,1,1,1])
    return y
  )",
                {{3, 3, 8, 8}}, {1, 2});
}

TEST(ChannelBlocks, ChannelsBecomePixelsInside) {
  expect_blocks(R"(
    x: f32[2,3,8,6]
    a = Conv(x, w[16,3,3,3], pads=[1,1,1,1])
    b = ConvTranspose(a, u[16,32,2,2], c[32], strides=[2,2])
    y = Conv(b, v[16,32,1,1])
    return y
  )",
                {{2, 3, 8, 6}}, {1, 3});
}

TEST(ChannelBlocks, ChannelsThatBecomePixelsInAnotherOrderComeOut) {
  expect_blocks(R"(
    x: f32[1,3,8,6]
    a = Conv(x, w[64,3,3,3], pads=[1,1,1,1])
    y = DepthToSpace(a, blocksize=2, mode="CRD")
    return y
  )",
                {{1, 3, 8, 6}}, {1, 1});
}

TEST(ChannelBlocks, RepeatedPixelsStayInside) {
  for (const std::string how :
       {R"(coordinate_transformation_mode="asymmetric", nearest_mode="floor")", R"(nearest_mode="round_prefer_floor")"}) {
    expect_blocks(R"(
      x: f32[2,3,8,6]
      a = Conv(x, w[20,3,3,3], pads=[1,1,1,1])
      b = Resize(a, _, s:f32[4]{1.0,1.0,2.0,3.0}, mode="nearest", )" +
                      how + R"()
      c = Conv(b, v[20,20,1,1])
      return c
    )",
                  {{2, 3, 8, 6}}, {1, 2});
  }
}

TEST(ChannelBlocks, OtherResizesArePlain) {
  expect_blocks(R"(
    x: f32[1,3,8,8]
    a = Conv(x, w[16,3,3,3], pads=[1,1,1,1])
    b = Resize(a, _, s:f32[4]{1.0,1.0,2.0,2.0}, mode="linear")
    return b
  )",
                {{1, 3, 8, 8}}, {1, 1});
}

TEST(ChannelBlocks, PartsOfBlocksArePlain) {
  expect_blocks(R"(
    x: f32[1,3,8,8]
    a = Conv(x, w[24,3,1,1])
    b = Slice(a, axes=[1], starts=[1], ends=[20])
    c = Concat(b, a, axis=1)
    return c
  )",
                {{1, 3, 8, 8}}, {1, 1});
}

TEST(ChannelBlocks, FactorsAndShiftsOfChannelsMayBeConstants) {
  expect_blocks(R"(
    x: f32[2,3,8,8]
    a = Conv(x, w[20,3,3,3])
    s = Mul(a, m[20,1,1])
    t = Add(s, n[1,20,1,1])
    h = Mul(t, k:f32[]{0.5})
    d = Conv(h, v[20,1,3,3], group=20)
    return d
  )",
                {{2, 3, 8, 8}}, {1, 2});
}

TEST(ChannelBlocks, BatchNormalizationBetweenConvolutionsStaysInside) {
  expect_blocks(R"(
    x: f32[2,3,8,8]
    a = Conv(x, w[16,3,3,3])
    p = MaxPool(a, kernel_shape=[2,2], strides=[2,2])
    c = Concat(p, p, axis=1)
    n = BatchNormalization(c, gamma[32], beta[32], mean[32], var:f32[32]{0.5,1.0,1.5,2.0,0.5,1.0,1.5,2.0,0.5,1.0,1.5,2.0,0.5,1.0,1.5,2.0,0.5,1.0,1.5,2.0,0.5,1.0,1.5,2.0,0.5,1.0,1.5,2.0,0.5,1.0,1.5,2.0})
    r = Relu(n)
    d = Conv(r, v[20,32,1,1])
    return d
  )",
                {{2, 3, 8, 8}}, {1, 2});
}

TEST(ChannelBlocks, WhatMayLeaveTheFiniteStaysPlainWhereBlocksAreNotFull) {
  expect_blocks(R"(
    x: f32[1,3,8,8]
    a = Conv(x, w[20,3,3,3])
    r = Abs(a)
    l = Log(r)
    b = Conv(l, v[20,20,1,1])
    return b
  )",
                {{1, 3, 8, 8}}, {3, 2});
}

TEST(ChannelBlocks, NarrowGroupsThatCutBlocksStayPlain) {
  expect_blocks(R"(
    x: f32[1,24,8,8]
    a = Conv(x, w[24,6,3,3], group=4)
    return a
  )",
                {{1, 24, 8, 8}}, {0, 0});
}

/// RegNet's groups of 24 channels, between pointwise convolutions.
TEST(ChannelBlocks, WideGroupsThatCutBlocksAreTaken) {
  expect_blocks(R"(
    x: f32[1,3,8,8]
    s = Conv(x, u[48,3,3,3], pads=[1,1,1,1])
    a = Conv(s, w[48,24,3,3], group=2, pads=[1,1,1,1])
    b = Relu(a)
    c = Conv(b, v[48,48,1,1])
    return c
  )",
                {{1, 3, 8, 8}}, {1, 3});
}

TEST(ChannelBlocks, AResultReadTwiceChangesLayoutOnce) {
  expect_blocks(R"(
    x: f32[1,3,8,8]
    a = Conv(x, w[20,3,3,3])
    s = Transpose(a, perm=[0,2,3,1])
    t = Transpose(a, perm=[0,3,2,1])
    return s, t, a
  )",
                {{1, 3, 8, 8}}, {1, 1});
}

}  // namespace
}  // namespace serin::engine
