// The graphs of kernels/cuda/nvidia (convolutions, products with their whole epilogue, attention), with a cuDNN that checks them (fake_dnn.h) and on the emulated
// device. tests/cuda asks the real library, without a device, whether it takes the same graphs.

#include "kernels/cuda/nvidia/dnn.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>

#include "kernels/device_weights.h"
#include "tests/gpu/nvidia/failing_calls.h"
#include "tests/gpu/nvidia/fake_dnn.h"
#include "tests/gpu/on_device.h"

namespace serin::kernels::test {
namespace {

constexpr DType kFloats[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16}, kHalves[] = {DType::kFloat16, DType::kBFloat16};

using Prepare = std::unique_ptr<Kernel> (*)(const std::shared_ptr<cuda::Dnn>&, const cuda::Libraries&, const OpDesc&, PrepareContext&,
                                            std::string&);

struct Dnn : testing::Test {
  Dnn() {
    device_backend().device()->make_current();
    std::string why;
    dnn = cuda::open_dnn(why);
    EXPECT_TRUE(dnn) << why;
    libraries.tactics = std::make_shared<cuda::Tactics>("", "a device");
  }
  ~Dnn() override { fake_dnn::rules = {}; }

  KernelRow row(std::string name, Prepare prepare) {
    return {std::move(name), [this, prepare](const OpDesc& desc, PrepareContext& context, std::string& why) {
              return prepare(dnn, libraries, desc, context, why);
            }};
  }
  /// It agrees with the reference, at odd addresses too, and the library has computed it.
  void expect_graph(Prepare prepare, const Case& c, const std::string& name = "a graph") {
    const uint64_t runs = fake_dnn::runs, refusals = fake_dnn::refusals;
    const DType dtype = c.outputs[0].dtype;
    expect_rows_agree({row(name, prepare)}, c,
                      {.relative = dtype == DType::kFloat16    ? 1e-3
                                   : dtype == DType::kBFloat16 ? 8e-3
                                                               : 1e-5,
                       .absolute = 1e-6});
    EXPECT_EQ(fake_dnn::refusals, refusals) << c.str();
    EXPECT_GT(fake_dnn::runs, runs) << c.str() << " was computed without the library";
  }
  std::unique_ptr<Kernel> prepared(Prepare prepare, const Case& c, std::string& why, bool tf32 = false) {
    DeviceWeights weights(*device_backend().device());
    PrepareContext context{&weights};
    context.tf32 = tf32;
    return prepare(dnn, libraries, c.describe(), context, why);
  }
  std::string refusal(Prepare prepare, const Case& c) {
    std::string why;
    return prepared(prepare, c, why) ? "it was prepared" : why;
  }

  std::shared_ptr<cuda::Dnn> dnn;
  cuda::Libraries libraries;
};

/// Small integers: every sum is exact in 16 bits, too.
Tensor drawn(DType dtype, const Shape& shape, uint32_t seed) { return random_integers(dtype, shape, seed, -3, 3); }

struct Window {
  Shape x, w;
  std::vector<int64_t> strides, dilations, pads;
  int64_t group = 1;
};
const Window kWindows[] = {
    {{2, 3, 7, 6}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {{1, 4, 9, 8}, {6, 2, 3, 2}, {2, 1}, {2, 1}, {0, 1, 2, 3}, 2},  // pads differ on all sides
    {{1, 4, 5, 5}, {4, 1, 3, 3}, {1, 2}, {1, 1}, {1, 1, 1, 1}, 4},
    {{2, 8, 4, 4}, {8, 8, 1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
    {{2, 3, 11}, {4, 3, 3}, {2}, {1}, {1, 2}},
    {{1, 2, 4, 5, 6}, {3, 2, 2, 3, 2}, {1, 2, 1}, {1, 1, 2}, {1, 0, 1, 0, 1, 1}},
};

Case convolution(DType dtype, const Window& window, bool channels_last, bool bias, bool residual, UnaryFn activation) {
  const size_t axes = window.strides.size();
  const auto turned = [channels_last](Shape shape) {
    if (!channels_last) return shape;
    Shape last{shape[0]};
    for (size_t i = 2; i < shape.rank(); ++i) last.push_back(shape[i]);
    last.push_back(shape[1]);
    return last;
  };
  Shape y{window.x[0], window.w[0]};
  for (size_t i = 0; i < axes; ++i)
    y.push_back((window.x[i + 2] + window.pads[i] + window.pads[axes + i] - (window.w[i + 2] - 1) * window.dilations[i] - 1) /
                    window.strides[i] +
                1);
  Case c{.op = Conv{.strides = window.strides,
                    .dilations = window.dilations,
                    .pads = window.pads,
                    .group = window.group,
                    .bias = bias,
                    .epilogue =
                        {.activation = activation, .alpha = activation == UnaryFn::kClip ? 0.f : 0.125f, .beta = 6.f, .residual = residual},
                    .channels_last = channels_last},
         .inputs = {drawn(dtype, turned(window.x), 1), drawn(dtype, turned(window.w), 2)},
         .outputs = {{dtype, turned(y)}}};
  if (bias) c.inputs.push_back(drawn(dtype, {window.w[0]}, 3));
  if (residual) c.inputs.push_back(drawn(dtype, turned(y), 4));
  return c;
}

TEST_F(Dnn, ConvolvesEveryWindowInBothLayouts) {
  for (const DType dtype : kFloats)
    for (const Window& window : kWindows)
      for (const bool channels_last : {false, true}) {
        const Case c = convolution(dtype, window, channels_last, true, true, UnaryFn::kRelu);
        expect_graph(cuda::prepare_conv_dnn, c);
        expect_graph(cuda::prepare_conv_dnn_apart, c);
      }
}

TEST_F(Dnn, ConvolvesWithEveryEpilogue) {
  for (const UnaryFn activation : {UnaryFn::kIdentity, UnaryFn::kRelu, UnaryFn::kLeakyRelu, UnaryFn::kClip, UnaryFn::kTanh,
                                   UnaryFn::kSigmoid, UnaryFn::kSilu, UnaryFn::kGelu, UnaryFn::kGeluTanh})
    for (const bool bias : {false, true})
      for (const bool residual : {false, true})
        for (const bool channels_last : {false, true})
          expect_graph(cuda::prepare_conv_dnn, convolution(kF32, kWindows[0], channels_last, bias, residual, activation));
}

TEST_F(Dnn, AddsTheBiasFirstWhereTheLibraryHasOnlyThat) {
  fake_dnn::rules.residual_first = false;
  for (const bool channels_last : {false, true})
    expect_graph(cuda::prepare_conv_dnn, convolution(kF32, kWindows[0], channels_last, true, true, UnaryFn::kRelu));
}

TEST_F(Dnn, ConvolvesApartWhereTheLibraryFusesNothing) {
  fake_dnn::rules.fuses = false;
  const Case c = convolution(DType::kFloat16, kWindows[0], true, true, true, UnaryFn::kHardSwish);
  EXPECT_EQ(refusal(cuda::prepare_conv_dnn, convolution(DType::kFloat16, kWindows[0], true, true, true, UnaryFn::kRelu)),
            "cuDNN: no engine for this graph");
  expect_graph(cuda::prepare_conv_dnn_apart, c);
  std::string why;
  EXPECT_EQ(prepared(cuda::prepare_conv_dnn_apart, c, why)->name(), "cudnn+conv_finish_cuda");
}

/// A plan on tensor cores would round the operands to 10 bits.
TEST_F(Dnn, KeepsFloatsUnlessTf32IsAskedFor) {
  Case c = convolution(kF32, kWindows[0], false, false, false, UnaryFn::kIdentity);
  c.inputs = {random_tensor(c.inputs[0].shape(), 1), random_tensor(c.inputs[1].shape(), 2)};
  expect_graph(cuda::prepare_conv_dnn, c);
  fake_dnn::rules.tensor_cores_alone = true;
  EXPECT_EQ(refusal(cuda::prepare_conv_dnn, c), "cuDNN: no plan works");
  std::string why;
  const auto kernel = prepared(cuda::prepare_conv_dnn, c, why, /*tf32=*/true);
  ASSERT_TRUE(kernel) << why;
  const Tensor exact = run_reference(c)[0], rounded = run_on_device(*device_backend().device(), *kernel, c)[0];
  expect_near(rounded, exact, {.relative = 0, .absolute = 2e-3}, "TF32");
  double difference = 0;
  for (int64_t i = 0; i < exact.shape().elements(); ++i) difference = std::max(difference, std::abs(rounded.at(i) - exact.at(i)));
  EXPECT_GT(difference, 1e-5) << "nothing was rounded to TF32";
}

Case product(DType dtype, const Shape& a, const Shape& b, const Shape& y, MatMul op) {
  Case c{.op = op, .inputs = {drawn(dtype, a, 1), drawn(dtype, b, 2)}, .outputs = {{dtype, y}}};
  if (op.bias) c.inputs.push_back(drawn(dtype, {y.back()}, 3));
  if (op.epilogue.residual) c.inputs.push_back(drawn(dtype, y, 4));
  return c;
}

TEST_F(Dnn, MultipliesWithTheWholeEpilogue) {
  for (const DType dtype : kHalves)
    for (const UnaryFn activation : {UnaryFn::kIdentity, UnaryFn::kGelu, UnaryFn::kSilu, UnaryFn::kSigmoid})
      for (const bool bias : {false, true})
        for (const bool residual : {false, true}) {
          const MatMul op{.bias = bias, .epilogue = {.activation = activation, .residual = residual}};
          expect_graph(cuda::prepare_matmul_dnn, product(dtype, {6, 16}, {16, 24}, {6, 24}, op));
          expect_graph(cuda::prepare_matmul_dnn, product(dtype, {2, 3, 16}, {16, 8}, {2, 3, 8}, op));
          expect_graph(cuda::prepare_matmul_dnn, product(dtype, {2, 3, 16}, {2, 16, 8}, {2, 3, 8}, op));
        }
}

TEST_F(Dnn, MultipliesTransposedOperands) {
  const Epilogue gelu{.activation = UnaryFn::kGelu};
  for (const DType dtype : kHalves) {
    expect_graph(cuda::prepare_matmul_dnn, product(dtype, {16, 8}, {16, 24}, {8, 24}, {.transpose_a = true, .epilogue = gelu}));
    expect_graph(cuda::prepare_matmul_dnn, product(dtype, {6, 16}, {24, 16}, {6, 24}, {.transpose_b = true, .epilogue = gelu}));
    expect_graph(cuda::prepare_matmul_dnn,
                 product(dtype, {2, 16, 8}, {24, 16}, {2, 8, 24}, {.transpose_a = true, .transpose_b = true, .epilogue = gelu}));
  }
}

/// q, k and v: [batch, heads, rows, head].
Case attention(DType dtype, int64_t heads, int64_t kv_heads, int64_t rows, int64_t keys, bool causal) {
  Case c{.op = Generic{"Attention"},
         .inputs = {random_tensor({2, heads, rows, 16}, 1), random_tensor({2, kv_heads, keys, 16}, 2),
                    random_tensor({2, kv_heads, keys, 8}, 3)},
         .outputs = {{dtype, {2, heads, rows, 8}}}};
  for (uint32_t i = 0; i < 3; ++i) c.inputs[i] = drawn(dtype, c.inputs[i].shape(), i + 1);
  set(c, "is_causal", int64_t{causal});
  return c;
}

TEST_F(Dnn, Attends) {
  for (const DType dtype : kHalves)
    for (const bool causal : {false, true}) {
      expect_graph(cuda::prepare_attention_dnn, attention(dtype, 4, 4, 5, 5, causal));
      expect_graph(cuda::prepare_attention_dnn, attention(dtype, 4, 2, 3, 3, causal));
    }
  for (const DType dtype : kHalves) expect_graph(cuda::prepare_attention_dnn, attention(dtype, 6, 1, 3, 9, false));
}

TEST_F(Dnn, SaysWhyItRefuses) {
  EXPECT_EQ(refusal(cuda::prepare_matmul_dnn, product(kF32, {6, 16}, {16, 24}, {6, 24}, {})), "only 16-bit floats");
  EXPECT_EQ(refusal(cuda::prepare_matmul_dnn, product(DType::kFloat16, {6, 16}, {16, 20}, {6, 20}, {})),
            "rows that are not aligned to 16 bytes");
  EXPECT_EQ(refusal(cuda::prepare_attention_dnn, attention(kF32, 4, 4, 5, 5, false)), "only 16-bit floats");
  EXPECT_EQ(refusal(cuda::prepare_conv_dnn, convolution(kF32, kWindows[0], false, false, false, UnaryFn::kHardSwish)),
            "cuDNN has no such activation");
  EXPECT_EQ(refusal(cuda::prepare_conv_dnn_apart, convolution(kF32, kWindows[0], false, false, false, UnaryFn::kIdentity)),
            "nothing follows its products");
}

/// A handle has one stream at a time: the fake ends the program where two threads use it at once.
TEST_F(Dnn, IsUsedByOneThreadAtATime) {
  const Case c = convolution(kF32, kWindows[0], true, true, true, UnaryFn::kRelu);
  const Tensor expected = run_reference(c)[0];
  std::string why;
  const auto kernel = prepared(cuda::prepare_conv_dnn, c, why);
  ASSERT_TRUE(kernel) << why;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int run = 0; run < 5; ++run)
        expect_near(run_on_device(*device_backend().device(), *kernel, c)[0], expected, {}, "of several threads");
    });
  for (std::thread& thread : threads) thread.join();
}

/// Of the library's calls, each fails once: the graph is refused with a reason, or right.
TEST_F(Dnn, SurvivesTheFailureOfAnyCall) {
  const Case c = convolution(DType::kFloat16, kWindows[0], true, true, true, UnaryFn::kRelu);
  const Survived seen = expect_survives_failures(c, fake_dnn::rules.calls_before_failure, [&](std::string& why) {
    libraries.tactics = std::make_shared<cuda::Tactics>("", "a device");
    return prepared(cuda::prepare_conv_dnn, c, why);
  });
  EXPECT_GT(seen.right, 5);
}

}  // namespace
}  // namespace serin::kernels::test
