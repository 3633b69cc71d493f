// The products of kernels/cuda/nvidia/matmul_lt.cc, with a cuBLASLt that checks every argument (fake_blas.h) and on the emulated device: layouts, transposed and
// batched operands, bias, residual and activations, 16 bits, addresses of less alignment, and what happens where the library refuses.

#include "kernels/cuda/nvidia/matmul_lt.h"

#include <gtest/gtest.h>

#include <memory>

#include "kernels/device_weights.h"
#include "tests/gpu/nvidia/failing_calls.h"
#include "tests/gpu/nvidia/fake_blas.h"
#include "tests/gpu/on_device.h"

namespace serin::kernels::test {
namespace {

constexpr DType kFloats[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};

struct MatMulLt : testing::Test {
  MatMulLt() {
    device_backend().device()->make_current();
    EXPECT_EQ(cublasLtCreate(&libraries.blas), CUBLAS_STATUS_SUCCESS);
    libraries.tactics = std::make_shared<cuda::Tactics>("", "a device");
  }
  ~MatMulLt() override {
    fake_blas::rules = {};
    cublasLtDestroy(libraries.blas);
  }

  KernelRow row() {
    return {"cublaslt", [this](const OpDesc& desc, PrepareContext& context, std::string& why) {
              return cuda::prepare_matmul_lt(libraries, desc, context, why);
            }};
  }

  /// It agrees with the reference, and the library has computed it: unless it is said otherwise, also where operands begin at odd addresses.
  void expect_product(const Case& c, bool at_odd_addresses = true) {
    const uint64_t products = fake_blas::products, refusals = fake_blas::refusals;
    const DType dtype = c.outputs[0].dtype;
    expect_rows_agree({row()}, c,
                      {.relative = dtype == DType::kFloat16    ? 1e-3
                                   : dtype == DType::kBFloat16 ? 8e-3
                                                               : 1e-5,
                       .absolute = 1e-6});
    EXPECT_EQ(fake_blas::refusals, refusals) << c.str();
    EXPECT_GE(fake_blas::products - products, at_odd_addresses ? 2u : 1u) << c.str() << " was computed without the library";
  }

  /// The name of the kernel that was prepared, or the reason for none.
  std::string prepared(const Case& c, bool tf32 = false) {
    DeviceWeights weights(*device_backend().device());
    PrepareContext context{&weights};
    context.tf32 = tf32;
    std::string why;
    const auto kernel = cuda::prepare_matmul_lt(libraries, c.describe(), context, why);
    return kernel ? std::string(kernel->name()) : why;
  }

  cuda::Libraries libraries;
};

/// Small integers: every sum is exact in 16 bits, too.
Tensor drawn(DType dtype, const Shape& shape, uint32_t seed) { return random_integers(dtype, shape, seed, -3, 3); }

Case product(DType dtype, int64_t m, int64_t n, int64_t k, MatMul op = {}) {
  const Shape a = op.transpose_a ? Shape{k, m} : Shape{m, k}, b = op.transpose_b ? Shape{n, k} : Shape{k, n}, y{m, n};
  Case c{.op = op, .inputs = {drawn(dtype, a, 1), drawn(dtype, b, 2)}, .outputs = {{dtype, y}}};
  if (op.bias) c.inputs.push_back(drawn(dtype, {n}, 3));
  if (op.epilogue.residual) c.inputs.push_back(drawn(dtype, y, 4));
  return c;
}

TEST_F(MatMulLt, MultipliesOperandsThatAreTransposedOrNot) {
  for (const DType dtype : kFloats)
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const auto& [m, n, k] : {std::array<int64_t, 3>{16, 32, 24}, {1, 8, 40}, {5, 3, 7}, {1, 1, 1}})
          expect_product(product(dtype, m, n, k, {.transpose_a = transpose_a, .transpose_b = transpose_b, .alpha = 0.5f}));
}

TEST_F(MatMulLt, MultipliesBatches) {
  const std::array<Shape, 3> shapes[] = {
      {{{3, 4, 8}, {8, 16}, {3, 4, 16}}},     // one weight: the rows of all are one matrix
      {{{3, 4, 8}, {3, 8, 16}, {3, 4, 16}}},  // one product each
      {{{4, 8}, {3, 8, 16}, {3, 4, 16}}},     // one first operand for all
      {{{2, 3, 4, 8}, {1, 1, 8, 16}, {2, 3, 4, 16}}},
      {{{1, 4, 8}, {3, 8, 16}, {3, 4, 16}}},
  };
  for (const DType dtype : kFloats)
    for (const auto& [a, b, y] : shapes)
      expect_product({.op = MatMul{}, .inputs = {drawn(dtype, a, 1), drawn(dtype, b, 2)}, .outputs = {{dtype, y}}});
}

TEST_F(MatMulLt, TransposesWithinBatches) {
  expect_product(
      {.op = MatMul{.transpose_a = true}, .inputs = {drawn(kF32, {3, 8, 4}, 1), drawn(kF32, {8, 16}, 2)}, .outputs = {{kF32, {3, 4, 16}}}});
  expect_product({.op = MatMul{.transpose_b = true},
                  .inputs = {drawn(kF32, {2, 3, 4, 8}, 1), drawn(kF32, {2, 3, 16, 8}, 2)},
                  .outputs = {{kF32, {2, 3, 4, 16}}}});
}

TEST_F(MatMulLt, AddsBiasAndResidualAndActivates) {
  for (const DType dtype : kFloats)
    for (const UnaryFn activation : {UnaryFn::kIdentity, UnaryFn::kRelu, UnaryFn::kGeluTanh, UnaryFn::kGelu, UnaryFn::kHardSwish})
      for (const bool bias : {false, true})
        for (const bool residual : {false, true}) {
          const Case c =
              product(dtype, 6, 16, 8, {.alpha = 0.25f, .bias = bias, .epilogue = {.activation = activation, .residual = residual}});
          // A bias at an odd address has no algorithm; then a kernel of our own takes the product.
          expect_product(c, !bias);
          EXPECT_EQ(prepared(c), cuda::activates_lt(activation) ? "cublaslt" : "cublaslt+unary_cuda");
        }
}

/// The library's kernels with an epilogue need whole vectors in 16 bits: no reason to leave the tensor cores.
TEST_F(MatMulLt, FinishesApartWhereTheLibraryHasNoSuchEpilogue) {
  fake_blas::rules.fuses = [](cublasLtEpilogue_t epilogue, int64_t rows) { return epilogue == CUBLASLT_EPILOGUE_DEFAULT || rows % 8 == 0; };
  for (const DType dtype : kFloats)
    for (const UnaryFn activation : {UnaryFn::kIdentity, UnaryFn::kRelu, UnaryFn::kGeluTanh, UnaryFn::kGelu})
      for (const bool bias : {false, true})
        for (const bool residual : {false, true}) {
          const Case c = product(dtype, 6, 13, 8, {.bias = bias, .epilogue = {.activation = activation, .residual = residual}});
          expect_product(c);
          const bool plain = !bias && activation == UnaryFn::kIdentity, after = !bias && activation == UnaryFn::kGelu;
          EXPECT_EQ(prepared(c), plain ? "cublaslt" : after ? "cublaslt+unary_cuda" : "cublaslt+conv_finish_cuda") << c.str();
        }
  EXPECT_EQ(prepared(product(DType::kFloat16, 6, 16, 8, {.bias = true})), "cublaslt") << "there it has one";
}

TEST_F(MatMulLt, TakesOperandsOfLessAlignmentToOurOwnKernelWhereTheLibraryHasNone) {
  fake_blas::rules.takes = [](uint32_t alignment) { return alignment >= 16; };
  for (const DType dtype : kFloats) expect_product(product(dtype, 6, 16, 8, {.bias = true}), /*at_odd_addresses=*/false);
}

TEST_F(MatMulLt, UsesTf32OnlyWhereItIsAskedFor) {
  Case c{.op = MatMul{}, .inputs = {random_tensor({8, 64}, 1), random_tensor({64, 8}, 2)}, .outputs = {{kF32, {8, 8}}}};
  expect_product(c);
  DeviceWeights weights(*device_backend().device());
  PrepareContext context{&weights};
  context.tf32 = true;
  std::string why;
  const auto kernel = cuda::prepare_matmul_lt(libraries, c.describe(), context, why);
  ASSERT_TRUE(kernel) << why;
  const Tensor exact = run_reference(c)[0], rounded = run_on_device(*device_backend().device(), *kernel, c)[0];
  expect_near(rounded, exact, {.relative = 0, .absolute = 2e-3}, "TF32");
  double difference = 0;
  for (int64_t i = 0; i < exact.shape().elements(); ++i) difference = std::max(difference, std::abs(rounded.at(i) - exact.at(i)));
  EXPECT_GT(difference, 1e-5) << "nothing was rounded to TF32";
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) EXPECT_EQ(prepared(product(dtype, 8, 8, 8), /*tf32=*/true), "cublaslt");
}

TEST_F(MatMulLt, SaysWhyItRefuses) {
  EXPECT_EQ(
      prepared(
          {.op = MatMul{}, .inputs = {drawn(kF32, {2, 1, 4, 8}, 1), drawn(kF32, {1, 3, 8, 16}, 2)}, .outputs = {{kF32, {2, 3, 4, 16}}}}),
      "batch dimensions broadcast in part");
  EXPECT_EQ(prepared({.op = MatMul{},
                      .inputs = {drawn(DType::kInt32, {4, 8}, 1), drawn(DType::kInt32, {8, 4}, 2)},
                      .outputs = {{DType::kInt32, {4, 4}}}}),
            "cuBLASLt multiplies f32, f16 and bf16 here");
  EXPECT_EQ(prepared({.op = MatMul{.bias = true},
                      .inputs = {drawn(kF32, {4, 8}, 1), drawn(kF32, {8, 4}, 2), drawn(kF32, {4, 1}, 3)},
                      .outputs = {{kF32, {4, 4}}}}),
            "cuBLASLt adds one bias for each column");
  fake_blas::rules.fuses = [](cublasLtEpilogue_t, int64_t) { return false; };
  EXPECT_EQ(prepared(product(kF32, 4, 4, 4)), "cuBLASLt has no algorithm for it");
  EXPECT_EQ(prepared(product(kF32, 4, 4, 4, {.bias = true})), "cuBLASLt has no algorithm for it");
}

/// Of the library's calls, each fails once. The product is refused with a reason, or right, or a fault: never wrong.
TEST_F(MatMulLt, SurvivesTheFailureOfAnyCall) {
  const Case c = product(DType::kFloat16, 6, 16, 8, {.bias = true, .epilogue = {.activation = UnaryFn::kGeluTanh, .residual = true}});
  const Survived seen = expect_survives_failures(c, fake_blas::rules.calls_before_failure, [&](std::string& why) {
    libraries.tactics = std::make_shared<cuda::Tactics>("", "a device");  // measures anew
    DeviceWeights weights(*device_backend().device());
    PrepareContext context{&weights};
    return cuda::prepare_matmul_lt(libraries, c.describe(), context, why);
  });
  EXPECT_GT(seen.right, 10);
  EXPECT_EQ(seen.refused, 0) << "a failure of one call leaves the library's other algorithms, or a product without epilogue";
}

}  // namespace
}  // namespace serin::kernels::test
