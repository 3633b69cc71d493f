// Products in bf16: the same as f32 products of operands that were rounded first.

#include <gtest/gtest.h>

#include "tests/kernels/harness.h"

namespace serin::kernels::test {
namespace {

class Bf16 : public testing::Test {
 protected:
  void SetUp() override {
    if (!multiplies_bf16()) GTEST_SKIP() << "this machine does not multiply bf16";
  }
  /// Runs the bf16 row on `c` and compares it with the reference on operands that are rounded already.
  static void expect_rounded_product(const Case& c) {
    PackedWeights weights;
    PrepareContext context{&weights, 1};
    const Prepared prepared = bf16_backend().prepare(c.describe(), context);
    ASSERT_TRUE(prepared.kernel);
    ASSERT_EQ(prepared.name, "matmul_bf16_avx512");
    Case exact = c;
    exact.inputs[0] = rounded_to_bf16(c.inputs[0]);
    exact.inputs[1] = rounded_to_bf16(c.inputs[1]);
    expect_near(run_kernel(*prepared.kernel, c)[0], run_reference(exact)[0], {1e-5, 1e-5}, c.str());
  }
};

Case product(int64_t m, int64_t n, int64_t k, bool transposed = false) {
  return {.op = MatMul{.transpose_b = transposed},
          .inputs = {random_tensor({m, k}, 1), random_tensor(transposed ? Shape{n, k} : Shape{k, n}, 2)},
          .outputs = {{kF32, {m, n}}},
          .constants = 0b10};
}

TEST_F(Bf16, MultipliesAnyShape) {
  for (const auto& [m, n, k] : {std::tuple{1, 1, 1}, {3, 17, 5}, {8, 48, 64}, {33, 100, 31}, {130, 50, 1700}, {300, 96, 7}}) {
    expect_rounded_product(product(m, n, k));
    expect_rounded_product(product(m, n, k, true));
  }
}

TEST_F(Bf16, FinishesInFullPrecision) {
  Case c = product(19, 70, 40);
  std::get<MatMul>(c.op).bias = true;
  std::get<MatMul>(c.op).alpha = 0.5f;
  std::get<MatMul>(c.op).epilogue = {.activation = UnaryFn::kGelu, .residual = true};
  c.inputs.push_back(random_tensor({70}, 3));
  c.inputs.push_back(random_tensor({19, 70}, 4));
  expect_rounded_product(c);
}

TEST_F(Bf16, LeavesComputedMatricesToF32) {
  Case c = product(4, 8, 8);
  c.constants = 0;
  PackedWeights weights;
  PrepareContext context{&weights, 1};
  EXPECT_EQ(bf16_backend().prepare(c.describe(), context).name.find("bf16"), std::string_view::npos);
}

}  // namespace
}  // namespace serin::kernels::test
