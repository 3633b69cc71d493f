// magnitudes_test.cc: nothing that a kernel computes is larger than graph::Magnitudes says, in whatever it computes; and the bounds are not empty words.

#include "runtime/graph/proofs/magnitudes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/runtime/engine/support.h"

namespace serin::engine::test {
namespace {

constexpr int64_t kWidth = 16;
const Shape kInput{4, 6, kWidth};

struct Rule {
  const char* name;
  std::string text;  ///< after x
  int64_t piece;     ///< of the result's last axis
};

const std::string kNorm = "u = LayerNormalization(x, g[16], b[16])\n";
const std::string kHeads = "r = Reshape(p, i64{0,0,2,8})\nh = Transpose(r, perm=[0,2,1,3])\n";

const Rule kRules[] = {
    {"Normalised", kNorm + "y = Identity(u)\n", 16},
    {"RootMeanSquare", "y = RMSNormalization(x, g[16])\n", 16},
    {"Product", kNorm + "y = FusedMatMul(u, w[16,24], c[24])\n", 24},
    {"Halves", kNorm + "y = FusedMatMul(u, w[16,24], c[24])\n", 4},
    {"TurnedProduct", kNorm + "y = FusedMatMul(u, w[24,16], c[24], transB=1)\n", 24},
    {"Residual", kNorm + "y = FusedMatMul(u, w[16,16], c[16], u, activation=\"Gelu\")\n", 16},
    {"TwoProducts", kNorm + "a = FusedMatMul(u, w[16,64], c[64], activation=\"Gelu\")\ny = FusedMatMul(a, v[64,16], d[16], u)\n", 16},
    {"Heads", kNorm + "p = FusedMatMul(u, w[16,16], c[16])\n" + kHeads + "y = Identity(h)\n", 8},
    {"Scores", kNorm + "p = FusedMatMul(u, w[16,16], c[16])\n" + kHeads + "t = Transpose(h, perm=[0,1,3,2])\ny = MatMul(h, t)\n", 1},
    {"Attention", kNorm + "p = FusedMatMul(u, w[16,16], c[16])\n" + kHeads + "y = Attention(h, h, h, heads_inside=1)\n", 8},
    {"OneByOne", kNorm + "t = Tanh(u)\nm = Mul(t, u)\ns = Add(m, k[16])\ny = Div(s, 0.25)\n", 16},
};

/// Rows that a normalisation stretches most, rows that it hardly tells from their mean, and what underflows or overflows on the way.
std::vector<Tensor> inputs() {
  std::vector<Tensor> all;
  const auto add = [&](const auto& element) {
    Tensor x = random_tensor(kInput, static_cast<uint32_t>(all.size()));
    const auto values = x.view().span<float>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = element(values[i], static_cast<int64_t>(i));
    all.push_back(x);
  };
  for (const float size : {1.F, 1e-30F, 1e-18F, 1e6F, 1e18F}) {
    add([&](float x, int64_t) { return x * size; });
    add([&](float x, int64_t i) { return i % kWidth == i / kWidth % kWidth ? x * size : 0.F; });
    add([&](float x, int64_t) { return size * (1000 + x * 1e-4F); });
    add([&](float x, int64_t) { return std::copysign(size, x); });
  }
  add([](float, int64_t) { return 0.F; });
  return all;
}

std::vector<const kernels::Backend*> backends() {
  std::vector<const kernels::Backend*> all{&reference(), &best()};
  static const auto bf16 = kernels::make_cpu_backend({.bf16 = true});
  if (kernels::multiplies_bf16()) all.push_back(bf16.get());
  return all;
}

class MagnitudesHold : public testing::TestWithParam<Rule> {};

TEST_P(MagnitudesHold, WhateverGoesIn) {
  const std::string text = "x: f32[4,6,16]\n" + GetParam().text + "return y\n";
  for (const kernels::Backend* backend : backends()) {
    const auto model = model_of(text, *backend);
    const auto executor = model->executor({});
    ASSERT_TRUE(executor) << executor.error().message;
    const graph::ValueId y = model->graph().outputs()[0];
    graph::Magnitudes magnitudes(model->graph());
    const int64_t length = GetParam().piece;
    const double most = magnitudes.of(y, {model->graph().value(y).type.shape->size() - 1, length}), element = magnitudes.of(y);
    double found = 0, found_element = 0;
    for (const Tensor& x : inputs()) {
      const std::vector<float> values = run(**executor, {x})[0].values<float>();
      for (size_t first = 0; first < values.size(); first += static_cast<size_t>(length)) {
        double squares = 0;
        for (size_t i = first; i < first + static_cast<size_t>(length); ++i) {
          if (std::isnan(values[i])) continue;
          squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
          found_element = std::max(found_element, std::abs(static_cast<double>(values[i])));
        }
        found = std::max(found, std::sqrt(squares));
      }
    }
    EXPECT_LE(found, most) << backend->name();
    EXPECT_LE(found_element, element) << backend->name();
    EXPECT_LT(most, 16 * found) << backend->name();
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, MagnitudesHold, testing::ValuesIn(kRules), [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace serin::engine::test
