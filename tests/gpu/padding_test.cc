// What is proven of padding is so on a device that computes in f16, where what is lower than -65504 becomes -inf.

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/graph/proofs/paddable.h"
#include "tests/gpu/device_under_test.h"
#include "tests/runtime/engine/drawn_padding.h"

namespace serin::engine {
namespace {

TEST(Padding, WhatIsProvenOfAnyGraphIsSoInHalves) {
  const auto backend = serin::test::open_device();
  const test::Held held = test::hold_padding(500, test::best(), {.device = backend.get(), .precision = Precision::kFp16}, 3e-2f);
  EXPECT_GE(held.proven, 80) << "or this says little";
  EXPECT_GE(held.compared, 400);
}

/// Hidden twice, a query behind the end sees nothing but -inf in an f16: its shares are NaN, and no 0 that they are multiplied by gets rid of them.
TEST(Padding, AQueryThatIsHiddenTwiceIsNanInHalves) {
  const auto backend = serin::test::open_device();
  const auto model = test::model_of(
      "x: f32[n,s,4]\nm: f32[n,s]\nuq = Unsqueeze(m, axes=[2])\nbq = Cast(uq, to=bool)\nuk = Unsqueeze(m, axes=[1])\nbk = Cast(uk, "
      "to=bool)\n"
      "hq = Where(bq, 0.0, -40000.0)\nhk = Where(bk, 0.0, -3.4e38)\nproducts = FusedMatMul(x, x, transB=1)\nsmall = Tanh(products)\n"
      "once = Add(small, hq)\ntwice = Add(once, hq)\nscores = Add(twice, hk)\np = Softmax(scores)\nrows = MatMul(p, x)\n"
      "kept = Mul(rows, uq)\nsum = ReduceSum(kept, axes=[1], keepdims=0)\nreturn sum\n",
      test::best(), {.device = backend.get(), .precision = Precision::kFp16});
  ASSERT_TRUE(model);
  EXPECT_FALSE(graph::prove_paddable(model->graph(), "s").yes);
  auto executor = model->executor({{"n", 1}, {"s", 8}});
  ASSERT_TRUE(executor) << executor.error().message;
  test::Tensor x = test::random_tensor({1, 8, 4}, 1), m({1, 8}, std::vector<float>{1, 1, 1, 1, 1, 0, 0, 0});
  EXPECT_TRUE(std::isnan(test::run(**executor, {x, m}).at(0).values<float>()[0]));
}

}  // namespace
}  // namespace serin::engine
