// What runs behind a library's convolution, here behind one of our own: together they are the whole operator. And kernels for operands at odd addresses.

#include <gtest/gtest.h>

#include "kernels/cuda/aligned.h"
#include "kernels/cuda/rows.h"
#include "tests/gpu/device_under_test.h"
#include "tests/gpu/on_device.h"

namespace serin::kernels::test {
namespace {

/// Conv without what follows it, then the kernel under test.
class InTwo final : public Kernel {
 public:
  explicit InTwo(const OpDesc& desc) {
    OpDesc alone = desc;
    auto& conv = std::get<Conv>(alone.op);
    conv.bias = false;
    conv.epilogue = {};
    alone.inputs.resize(2);
    PrepareContext context;
    std::string why;
    products_ = cuda::prepare_conv(alone, context, why);
    finish_ = cuda::prepare_conv_finish(desc, context, why);
    EXPECT_TRUE(products_ && finish_) << why;
  }
  std::string_view name() const override { return "conv_direct_cuda+conv_finish_cuda"; }
  Fault run(Stream& stream, std::span<const TensorView> in, std::span<TensorView> out) const override {
    Fault fault = products_->run(stream, in.first(2), out);
    return fault ? fault : finish_->run(stream, in, out);
  }

 private:
  std::unique_ptr<Kernel> products_, finish_;
};

Tensor drawn(DType dtype, const Shape& shape, uint32_t seed) {
  return dtype == DType::kFloat32 ? random_tensor(shape, seed) : random_integers(dtype, shape, seed, -2, 2);
}

/// 1x1 windows over an image of 5 x `width` pixels.
Case convolution(DType dtype, bool channels_last, int64_t channels, int64_t width, UnaryFn activation, bool bias, bool residual) {
  const Shape x = channels_last ? Shape{2, 5, width, 3} : Shape{2, 3, 5, width};
  const Shape y = channels_last ? Shape{2, 5, width, channels} : Shape{2, channels, 5, width};
  const Shape weight = channels_last ? Shape{channels, 1, 1, 3} : Shape{channels, 3, 1, 1};
  Conv op;
  op.strides = op.dilations = {1, 1};
  op.pads = {0, 0, 0, 0};
  op.channels_last = channels_last;
  op.bias = bias;
  op.epilogue = {.activation = activation, .alpha = 1.f / 6, .beta = 0.5f, .residual = residual};
  Case c{.op = op, .inputs = {drawn(dtype, x, 1), drawn(dtype, weight, 2)}, .outputs = {{dtype, y}}};
  if (bias) c.inputs.push_back(drawn(dtype, {channels}, 3));
  if (residual) c.inputs.push_back(drawn(dtype, y, 4));
  return c;
}

TEST(ConvFinish, WithTheProductsIsTheOperator) {
  if (!serin::test::emulated()) GTEST_SKIP() << "calls kernels that are inside of a plugin";
  Device& device = *device_backend().device();
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const bool channels_last : {false, true}) {
      for (const UnaryFn activation : {UnaryFn::kIdentity, UnaryFn::kRelu, UnaryFn::kHardSwish, UnaryFn::kHardSigmoid}) {
        for (const int operands : {0, 1, 2, 3}) {
          for (const int64_t size : {8, 7}) {  // whole packs, or not
            const Case c = convolution(dtype, channels_last, size, size, activation, operands & 1, operands & 2);
            const InTwo kernel(c.describe());
            const std::vector<Tensor> expected = run_reference(c);
            for (const bool shifted : {false, true}) {
              const std::vector<Tensor> actual = run_on_device(device, kernel, c, nullptr, {}, shifted);
              // The sum is rounded once more on the way.
              expect_near(actual[0], expected[0], dtype == DType::kFloat32 ? Tolerance{1e-5, 1e-6} : Tolerance{2e-2, 2e-2}, c.str());
            }
          }
        }
      }
    }
  }
}

/// Sums up to 4,800, of which f16 has every second or fourth above 2,048, and residuals that leave little of them.
TEST(ConvFinish, MayRoundOnceMoreThanTheOperator) {
  if (!serin::test::emulated()) GTEST_SKIP() << "calls kernels that are inside of a plugin";
  const DType dtype = DType::kFloat16;
  Case c = convolution(dtype, true, 8, 8, UnaryFn::kIdentity, false, true);
  for (Tensor& input : c.inputs) input = random_integers(dtype, input.shape(), 5, -40, 40);
  c.inputs.back() = random_integers(dtype, c.inputs.back().shape(), 6, -3000, 3000);
  const KernelRow two{"two", [](const OpDesc& desc, PrepareContext&, std::string&) { return std::make_unique<InTwo>(desc); }, {}};
  expect_rows_agree({two}, c, {0x1p-10, 0x1p-16});
}

TEST(Aligned, AnotherKernelTakesOperandsThatAreNot) {
  int first = 0, second = 0;
  const auto counting = [](int& runs) {
    return make_kernel([&runs](Stream&, Inputs, Outputs) -> Fault {
      ++runs;
      return kOk;
    });
  };
  const auto kernel = cuda::aligned_or(counting(first), counting(second));
  alignas(256) std::byte bytes[512];
  const auto run = [&](size_t x, size_t y) {
    const std::vector<TensorView> in{{DType::kFloat16, {4}, bytes + x}, {}};
    std::vector<TensorView> out{{DType::kFloat16, {4}, bytes + y}};
    Stream stream;
    EXPECT_FALSE(kernel->run(stream, in, out));
  };
  run(0, 256), run(16, 272);
  EXPECT_EQ(first, 2);
  run(2, 256), run(0, 264);
  EXPECT_EQ(first, 2);
  EXPECT_EQ(second, 2);
  EXPECT_FALSE(cuda::aligned_or(counting(first), nullptr)) << "then what is not aligned would have no kernel";
}

}  // namespace
}  // namespace serin::kernels::test
