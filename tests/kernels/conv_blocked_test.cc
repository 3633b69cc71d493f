// Convolution and pooling on channel blocks against the reference on plain tensors: operands are put into blocks by the reference kernel, the result is
// taken out of them by the kernel of the instruction set, so that both directions are seen. In bf16 the reference has operands that were rounded first.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/parallel.h"
#include "tests/kernels/harness.h"

namespace serin::kernels::test {
namespace {

struct Form {
  int64_t n, c, h, w, m;
  std::vector<int64_t> kernel = {3, 3}, strides = {1, 1}, pads = {1, 1, 1, 1}, dilations = {1, 1};
  int64_t group = 1;
  bool bias = true, residual = false, plain_x = false;
  UnaryFn activation = UnaryFn::kRelu;
  float alpha = 0.f, beta = 0.f;
  std::string expected_name = {};  // part of it
};

int64_t outputs(const Form& f, size_t axis, int64_t size) {
  return (size + f.pads[axis] + f.pads[axis + 2] - (f.kernel[axis] - 1) * f.dilations[axis] - 1) / f.strides[axis] + 1;
}

Shape blocks_of(const Shape& plain, int64_t b) { return {plain[0], (plain[1] + b - 1) / b, plain[2], plain[3], b}; }

class Blocked : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override {
    if (GetParam().isa > best_isa()) GTEST_SKIP() << "this machine has no " << isa_name(GetParam().isa);
    if (bf16() && !multiplies_bf16()) GTEST_SKIP() << "this machine does not multiply bf16";
  }
  static bool bf16() { return GetParam().bf16; }
  static const Backend& tested() { return bf16() ? bf16_backend() : backend(GetParam().isa); }
  int64_t block() const { return tested().channel_block(); }

  /// Runs the first row that accepts, with as many threads; its name goes to `name`.
  Tensor run(const Case& c, int threads, std::string* name = nullptr) {
    PackedWeights weights;
    PrepareContext context{&weights, threads};
    Prepared prepared = tested().prepare(c.describe(), context);
    if (!prepared.kernel) {
      ADD_FAILURE() << c.str() << " " << (prepared.refusals.empty() ? "no rows" : prepared.refusals.front().reason);
      return Tensor(c.outputs[0].dtype, c.outputs[0].shape);
    }
    if (name) *name = prepared.name;
    std::vector<TensorView> inputs;
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      inputs.push_back(c.inputs[i].view());
      if (prepared.kernel->packed_inputs() >> i & 1u) inputs.back().data = nullptr;
    }
    Tensor y(c.outputs[0].dtype, c.outputs[0].shape), scratch(DType::kUInt8, {static_cast<int64_t>(prepared.kernel->scratch_bytes())});
    TensorView out = y.view();
    Workers workers(threads);
    Stream stream{scratch.view().as<std::byte>(), threads > 1 ? &workers : nullptr};
    const Fault fault = prepared.kernel->run(stream, inputs, {&out, 1});
    EXPECT_FALSE(fault) << *fault;
    EXPECT_TRUE(y.sentinels_intact() && scratch.sentinels_intact()) << c.str();
    return y;
  }
  Tensor to_blocks(const Tensor& plain) {
    return run_reference({ChannelBlocks{}, {plain}, {{kF32, blocks_of(plain.shape(), block())}}})[0];
  }
  Tensor to_plain(const Tensor& blocked, const Shape& shape) { return run({ChannelBlocks{}, {blocked}, {{kF32, shape}}}, 1); }

  void expect_conv(const Form& f, int threads = 1) {
    Conv op{f.strides, f.dilations, f.pads, f.group, f.bias, {f.activation, f.alpha, f.beta, f.residual}};
    const Shape y_shape{f.n, f.m, outputs(f, 0, f.h), outputs(f, 1, f.w)};
    Case plain{
        op, {random_tensor({f.n, f.c, f.h, f.w}, 1), random_tensor({f.m, f.c / f.group, f.kernel[0], f.kernel[1]}, 2)}, {{kF32, y_shape}}};
    if (f.bias) plain.inputs.push_back(random_tensor({f.m}, 3));
    if (f.residual) plain.inputs.push_back(random_tensor(y_shape, 4));
    plain.constants = f.bias ? 0b110 : 0b10;

    Case blocked = plain;
    if (!f.plain_x) blocked.inputs[0] = to_blocks(plain.inputs[0]);
    if (f.residual) blocked.inputs.back() = to_blocks(plain.inputs.back());
    blocked.outputs[0].shape = blocks_of(y_shape, block());
    std::string name;
    const Tensor y = run(blocked, threads, &name);
    EXPECT_NE(name.find(f.expected_name), std::string::npos) << name;
    for (int64_t i = 0; i < y.view().elements(); ++i) ASSERT_TRUE(std::isfinite(y.at(i))) << "also where the last block is filled up";
    EXPECT_EQ(name.find("bf16") != std::string::npos, bf16() && name.find("depthwise") == std::string::npos) << name;
    Tolerance tolerance{1e-4, 1e-5};
    if (name.find("bf16") != std::string::npos) {
      plain.inputs[0] = rounded_to_bf16(plain.inputs[0]);
      plain.inputs[1] = rounded_to_bf16(plain.inputs[1]);
      if (name.find("winograd") != std::string::npos) tolerance = {0, 1e-2};  // what is rounded are the transformed operands
    }
    expect_near(to_plain(y, y_shape), run_reference(plain)[0], tolerance, plain.str() + " by " + name);
  }
};
INSTANTIATE_TEST_SUITE_P(On, Blocked,
                         testing::Values(Target{Isa::kScalar}, Target{Isa::kAvx2}, Target{Isa::kAvx512}, Target{Isa::kAvx512, true}),
                         [](const auto& test) { return std::string(isa_name(test.param.isa)) + (test.param.bf16 ? "_bf16" : ""); });

TEST_P(Blocked, GoesInAndOut) {
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 16, 3, 5}, Shape{1, 24, 7, 9}, Shape{3, 33, 4, 4}}) {
    const Tensor x = random_tensor(shape, 1);
    const Tensor expected = to_blocks(x);
    expect_near(run({ChannelBlocks{}, {x}, {{kF32, expected.shape()}}}, 1), expected, {0, 0}, shape.str());
    expect_near(to_plain(expected, shape), x, {0, 0}, shape.str());
  }
}

TEST_P(Blocked, Pointwise) {
  for (const int64_t m : {1, 8, 16, 24, 40, 64, 80, 112, 144}) {
    expect_conv({.n = 2, .c = 24, .h = 5, .w = 7, .m = m, .kernel = {1, 1}, .pads = {0, 0, 0, 0}, .expected_name = "point"});
  }
  for (const int64_t c : {1, 3, 16, 31, 128, 200, 300}) {
    expect_conv(
        {.n = 1, .c = c, .h = 6, .w = 6, .m = 48, .kernel = {1, 1}, .pads = {0, 0, 0, 0}, .residual = true, .expected_name = "point"});
  }
}

TEST_P(Blocked, PointwiseOverEveryNumberOfPixels) {
  for (int64_t w = 1; w <= 32; ++w) {
    expect_conv({.n = 1, .c = 20, .h = 1, .w = w, .m = 16, .kernel = {1, 1}, .pads = {0, 0, 0, 0}});
    expect_conv({.n = 1, .c = 20, .h = 1, .w = w, .m = 96, .kernel = {1, 1}, .pads = {0, 0, 0, 0}, .bias = false});
  }
}

TEST_P(Blocked, Windows) {
  expect_conv({.n = 1, .c = 40, .h = 9, .w = 11, .m = 40, .strides = {2, 2}, .expected_name = "window"});
  expect_conv({.n = 2, .c = 16, .h = 9, .w = 8, .m = 80, .kernel = {5, 3}, .strides = {1, 2}, .pads = {2, 0, 1, 1}, .residual = true});
  expect_conv({.n = 1, .c = 33, .h = 12, .w = 12, .m = 17, .pads = {2, 2, 2, 2}, .dilations = {2, 2}});
  expect_conv({.n = 1, .c = 64, .h = 8, .w = 8, .m = 128, .kernel = {1, 1}, .strides = {2, 2}, .pads = {0, 0, 0, 0}});
  expect_conv({.n = 1, .c = 20, .h = 3, .w = 3, .m = 20, .kernel = {7, 7}, .strides = {1, 1}, .pads = {3, 3, 3, 3}});
  expect_conv({.n = 1, .c = 64, .h = 7, .w = 7, .m = 64, .group = 2, .expected_name = "window"});
  expect_conv({.n = 2, .c = 96, .h = 5, .w = 5, .m = 48, .kernel = {1, 1}, .pads = {0, 0, 0, 0}, .group = 3, .expected_name = "point"});
}

/// Groups begin and end within blocks: of x, of y, or of both; a block may see several groups, and the last one be filled up.
TEST_P(Blocked, GroupsThatCutBlocks) {
  const std::pair<int64_t, int64_t> sizes[] = {{24, 24}, {12, 12}, {20, 10}, {10, 20}, {40, 40},
                                               {13, 13}, {16, 24}, {24, 16}, {3, 5},   {17, 1}};
  for (const auto& [channels, filters] : sizes)
    for (const int64_t groups : {2, 5}) {
      const Form f{.n = 2, .c = channels * groups, .h = 7, .w = 6, .m = filters * groups, .group = groups, .expected_name = "window"};
      expect_conv(f);
      expect_conv({.n = 1, .c = f.c, .h = 9, .w = 8, .m = f.m, .strides = {2, 2}, .group = groups, .residual = true}, 3);
      expect_conv({.n = 1,
                   .c = f.c,
                   .h = 5,
                   .w = 5,
                   .m = f.m,
                   .kernel = {1, 1},
                   .pads = {0, 0, 0, 0},
                   .group = groups,
                   .bias = false,
                   .expected_name = "point"});
      expect_conv({.n = 1, .c = f.c, .h = 8, .w = 8, .m = f.m, .pads = {2, 2, 2, 2}, .dilations = {2, 2}, .group = groups});
    }
  expect_conv({.n = 1, .c = 1440, .h = 7, .w = 7, .m = 1440, .group = 10}, 2);  // more channels than one piece
}

TEST_P(Blocked, WindowsThatMissTheImage) {
  expect_conv({.n = 1, .c = 24, .h = 4, .w = 4, .m = 40, .pads = {12, 12, 12, 12}, .dilations = {12, 12}, .expected_name = "window"});
  expect_conv({.n = 2, .c = 16, .h = 5, .w = 9, .m = 16, .pads = {6, 6, 6, 6}, .dilations = {6, 6}, .residual = true});
  expect_conv({.n = 1, .c = 16, .h = 2, .w = 2, .m = 16, .kernel = {2, 2}, .strides = {9, 9}, .pads = {5, 5, 5, 5}});  // no output sees it
}

TEST_P(Blocked, ImagesOfFewChannels) {
  expect_conv({.n = 2,
               .c = 3,
               .h = 21,
               .w = 18,
               .m = 64,
               .kernel = {7, 7},
               .strides = {2, 2},
               .pads = {3, 3, 3, 3},
               .plain_x = true,
               .expected_name = "image"});
  expect_conv({.n = 1, .c = 3, .h = 9, .w = 9, .m = 24, .strides = {2, 2}, .pads = {0, 0, 1, 1}, .plain_x = true});
  expect_conv({.n = 1, .c = 1, .h = 8, .w = 8, .m = 16, .plain_x = true});
  expect_conv({.n = 1,
               .c = 3,
               .h = 16,
               .w = 16,
               .m = 32,
               .kernel = {4, 4},
               .strides = {4, 4},
               .pads = {0, 0, 0, 0},
               .bias = false,
               .plain_x = true});
}

TEST_P(Blocked, Depthwise) {
  for (const int64_t size : {1, 2, 5, 7, 14, 23}) {
    for (const int64_t cells : {3, 5}) {
      for (const int64_t stride : {1, 2}) {
        const int64_t pad = cells / 2;
        expect_conv({.n = 2,
                     .c = 24,
                     .h = size,
                     .w = size,
                     .m = 24,
                     .kernel = {cells, cells},
                     .strides = {stride, stride},
                     .pads = {pad, pad, pad, pad},
                     .group = 24,
                     .expected_name = "depthwise"});
      }
    }
  }
  expect_conv({.n = 1,
               .c = 40,
               .h = 13,
               .w = 17,
               .m = 40,
               .kernel = {2, 4},
               .strides = {1, 3},
               .pads = {0, 1, 2, 0},
               .dilations = {2, 1},
               .group = 40});
  expect_conv({.n = 1, .c = 16, .h = 12, .w = 19, .m = 16, .pads = {2, 2, 2, 2}, .dilations = {2, 2}, .group = 16});
}

TEST_P(Blocked, Winograd) {
  for (const int64_t size : {4, 7, 8, 9, 14, 17}) {
    expect_conv({.n = 2, .c = 48, .h = size, .w = size + 1, .m = 40, .residual = true, .expected_name = "winograd"});
  }
  expect_conv({.n = 1, .c = 16, .h = 12, .w = 11, .m = 16, .pads = {0, 0, 0, 0}, .expected_name = bf16() ? "winograd2" : "winograd4"});
  expect_conv({.n = 1, .c = 20, .h = 10, .w = 10, .m = 33, .pads = {0, 2, 1, 2}, .activation = UnaryFn::kSilu});
  expect_conv({.n = 1, .c = 256, .h = 12, .w = 12, .m = 256, .expected_name = "winograd2"});
  expect_conv({.n = 3, .c = 160, .h = 14, .w = 14, .m = 64, .bias = false});
}

TEST_P(Blocked, EveryActivation) {
  for (const UnaryFn fn : {UnaryFn::kIdentity, UnaryFn::kSilu, UnaryFn::kHardSwish, UnaryFn::kSigmoid, UnaryFn::kHardSigmoid,
                           UnaryFn::kGelu, UnaryFn::kTanh}) {
    const float alpha = fn == UnaryFn::kHardSigmoid ? 0.2f : 0.f, beta = fn == UnaryFn::kHardSigmoid ? 0.5f : 0.f;
    expect_conv(
        {.n = 1, .c = 24, .h = 6, .w = 5, .m = 24, .strides = {2, 2}, .residual = true, .activation = fn, .alpha = alpha, .beta = beta});
    expect_conv({.n = 1, .c = 24, .h = 6, .w = 5, .m = 24, .group = 24, .activation = fn, .alpha = alpha, .beta = beta});
  }
  expect_conv({.n = 1,
               .c = 24,
               .h = 6,
               .w = 5,
               .m = 24,
               .kernel = {1, 1},
               .pads = {0, 0, 0, 0},
               .activation = UnaryFn::kClip,
               .alpha = 0.f,
               .beta = 6.f});
}

TEST_P(Blocked, TwoThreads) {
  expect_conv({.n = 1, .c = 64, .h = 28, .w = 28, .m = 64}, 2);
  expect_conv({.n = 1, .c = 128, .h = 7, .w = 7, .m = 128}, 2);
  expect_conv({.n = 3, .c = 64, .h = 13, .w = 13, .m = 200, .kernel = {1, 1}, .pads = {0, 0, 0, 0}, .activation = UnaryFn::kSilu}, 2);
  expect_conv({.n = 2, .c = 96, .h = 20, .w = 20, .m = 96, .kernel = {5, 5}, .strides = {2, 2}, .pads = {2, 2, 2, 2}, .group = 96}, 2);
  expect_conv({.n = 2, .c = 3, .h = 64, .w = 64, .m = 32, .strides = {2, 2}, .plain_x = true}, 2);
  expect_conv({.n = 1, .c = 96, .h = 21, .w = 21, .m = 96, .strides = {2, 2}}, 3);
}

TEST_P(Blocked, EqualInputsGiveEqualBitsOnTwoThreads) {
  Case c{Conv{{1, 1}, {1, 1}, {1, 1, 1, 1}, 1, false, {}},
         {to_blocks(random_tensor({1, 64, 30, 30}, 1)), random_tensor({64, 64, 3, 3}, 2)},
         {},
         0b10};
  c.outputs = {{kF32, blocks_of({1, 64, 30, 30}, block())}};
  const Tensor first = run(c, 2);
  for (int i = 0; i < 5; ++i) expect_near(run(c, 2), first, {0, 0}, "run again");
}

TEST_P(Blocked, AnyNumberOfThreadsGivesTheSameBitsInBf16) {
  if (!bf16()) GTEST_SKIP() << "f32 sums of a single pixel run differently";
  const Form forms[] = {{.n = 1, .c = 64, .h = 30, .w = 30, .m = 64},
                        {.n = 2, .c = 40, .h = 23, .w = 11, .m = 200, .kernel = {1, 1}, .pads = {0, 0, 0, 0}},
                        {.n = 1, .c = 33, .h = 21, .w = 19, .m = 16, .strides = {2, 2}},
                        {.n = 1, .c = 300, .h = 15, .w = 15, .m = 70, .kernel = {1, 1}, .strides = {2, 2}, .pads = {0, 0, 0, 0}},
                        {.n = 1, .c = 3, .h = 40, .w = 40, .m = 24, .strides = {2, 2}, .plain_x = true}};
  for (const Form& f : forms) {
    const Tensor x = random_tensor({f.n, f.c, f.h, f.w}, 1);
    Case c{Conv{f.strides, {1, 1}, f.pads, 1, false, {}},
           {f.plain_x ? x : to_blocks(x), random_tensor({f.m, f.c, f.kernel[0], f.kernel[1]}, 2)},
           {{kF32, blocks_of({f.n, f.m, outputs(f, 0, f.h), outputs(f, 1, f.w)}, block())}},
           0b10};
    const Tensor one = run(c, 1);
    for (const int threads : {2, 3, 8}) expect_near(run(c, threads), one, {0, 0}, c.str());
  }
}

TEST_P(Blocked, NanAndInfinityGoThrough) {
  const Form forms[] = {{.n = 1, .c = 20, .h = 9, .w = 9, .m = 20, .kernel = {1, 1}, .pads = {0, 0, 0, 0}},
                        {.n = 1, .c = 20, .h = 9, .w = 9, .m = 20, .kernel = {1, 1}, .strides = {2, 2}, .pads = {0, 0, 0, 0}},
                        {.n = 1, .c = 20, .h = 9, .w = 9, .m = 20, .strides = {2, 2}},
                        {.n = 1, .c = 20, .h = 9, .w = 9, .m = 20, .group = 20},
                        {.n = 1, .c = 20, .h = 9, .w = 9, .m = 20},
                        {.n = 1, .c = 3, .h = 9, .w = 9, .m = 20, .plain_x = true}};
  for (const Form& f : forms) {
    for (const float special : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
      Conv op{f.strides, f.dilations, f.pads, f.group, false, {f.activation, 0.f, 0.f, false}};
      const Shape y_shape{f.n, f.m, outputs(f, 0, f.h), outputs(f, 1, f.w)};
      Tensor x = random_tensor({f.n, f.c, f.h, f.w}, 1);
      x.view().as<float>()[f.h * f.w + 4 * f.w + 4] = special;  // channel 1, in the middle
      Case plain{op, {x, random_tensor({f.m, f.c / f.group, f.kernel[0], f.kernel[1]}, 2)}, {{kF32, y_shape}}, 0b10};
      Case blocked = plain;
      if (!f.plain_x) blocked.inputs[0] = to_blocks(x);
      blocked.outputs[0].shape = blocks_of(y_shape, block());
      std::string name;
      const Tensor actual = to_plain(run(blocked, 1, &name), y_shape), expected = run_reference(plain)[0];
      const bool winograd = name.find("winograd") != std::string::npos;
      for (int64_t i = 0; i < expected.view().elements(); ++i) {
        const double y = actual.at(i), right = expected.at(i);
        ASSERT_TRUE(!std::isnan(right) || std::isnan(y)) << name << " hides it at " << i;
        ASSERT_TRUE(!std::isinf(right) || y == right || (winograd && std::isnan(y))) << name << " hides it at " << i;
        ASSERT_TRUE(!std::isfinite(right) || std::isfinite(y) || winograd) << name << " spreads it to " << i;
      }
    }
  }
}

TEST_P(Blocked, Pools) {
  struct Window {
    std::vector<int64_t> kernel, strides, dilations, pads;
  };
  for (const Window& window : {Window{{3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}}, Window{{2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}},
                               Window{{3, 2}, {1, 2}, {2, 1}, {1, 0, 2, 1}}}) {
    for (const int mode : {0, 1, 2}) {
      const Pool op{mode > 0, mode == 2, window.kernel, window.strides, window.dilations, window.pads};
      const Form f{.n = 2,
                   .c = 20,
                   .h = 11,
                   .w = 9,
                   .m = 20,
                   .kernel = window.kernel,
                   .strides = window.strides,
                   .pads = window.pads,
                   .dilations = window.dilations};
      const Shape y_shape{2, 20, outputs(f, 0, 11), outputs(f, 1, 9)};
      const Tensor x = random_tensor({2, 20, 11, 9}, 5);
      const Tensor y = run({op, {to_blocks(x)}, {{kF32, blocks_of(y_shape, block())}}}, 1);
      expect_near(to_plain(y, y_shape), run_reference({op, {x}, {{kF32, y_shape}}})[0], {1e-5, 1e-6}, "pool");
    }
  }
}

TEST_P(Blocked, MeansAndFactors) {
  for (const int64_t size : {1, 7, 20}) {
    const Tensor x = random_tensor({2, 3, size, size, block()}, 6), factor = random_tensor({2, 3, 1, 1, block()}, 7);
    expect_rows_match_reference(tested(), {Reduce{ReduceFn::kMean, {2, 3}}, {x}, {{kF32, factor.shape()}}}, {1e-5, 1e-6});
    expect_rows_match_reference(tested(), {Binary{BinaryFn::kMul}, {x, factor}, {{kF32, x.shape()}}});
    expect_rows_match_reference(tested(), {Binary{BinaryFn::kMul}, {factor, x}, {{kF32, x.shape()}}});
  }
}

}  // namespace
}  // namespace serin::kernels::test
