// rewrites_test.cc: a graph answers the same numbers after a pass has rewritten it, on reference kernels and on the best there are.

#include <gtest/gtest.h>

#include "tests/runtime/engine/support.h"

namespace serin::engine::test {
namespace {

struct Rewrite {
  const char *name, *pass;
  std::string text;  ///< of one input, x
};

std::string deconvolution(const std::string& node) { return "x: f32[2,6,5,7]\ny = ConvTranspose(x, " + node + ")\nreturn y"; }

const Rewrite kRewrites[] = {
    {"NormalisedConvolution", "fuse_conv_batchnorm",
     "x: f32[2,6,5,7]\na = Conv(x, w[8,3,3,2], b[8], group=2)\ny = BatchNormalization(a, g[8], h[8], m[8], var[8])\nreturn y"},
    {"NormalisedConvTranspose", "fuse_conv_batchnorm",
     "x: f32[2,6,5,7]\na = ConvTranspose(x, w[6,4,3,2], b[8], group=2, strides=[2,2])\n"
     "y = BatchNormalization(a, g[8], h[8], m[8], var[8])\nreturn y"},
    {"StrideOne", "lower_conv_transpose", deconvolution("w[6,4,3,2], b[4], pads=[1,0,1,1]")},
    {"StrideOneInGroups", "lower_conv_transpose", deconvolution("w[6,4,3,3], group=2, pads=[2,2,0,1]")},
    {"StrideOneDilated", "lower_conv_transpose", deconvolution("w[6,4,3,3], b[4], dilations=[2,3], output_padding=[1,2]")},
    {"WindowsSideBySide", "lower_conv_transpose", deconvolution("w[6,16,2,2], b[16], strides=[2,2]")},
    {"WindowsThatOverlap", "lower_conv_transpose",
     "x: f32[2,6,5,7]\na = Resize(x, _, _, sizes:i64[4]{2,6,9,11})\nb = Conv(a, v[16,6,1,1])\n"
     "y = ConvTranspose(b, w[16,16,4,4], c[16], strides=[2,2], pads=[1,1,1,1])\nreturn y"},
    {"LargeWindowsThatOverlap", "lower_conv_transpose",
     "x: f32[2,6,5,7]\na = Resize(x, _, _, sizes:i64[4]{2,6,9,11})\nb = Conv(a, v[16,6,1,1])\n"
     "y = ConvTranspose(b, w[16,16,5,6], strides=[2,2], pads=[2,2,2,2], output_padding=[1,0])\nreturn y"},
    {"SoftmaxOfRows", "softmax_of_rows",
     "x: f32[2,6,5,7]\ns = Shape(x)\nr = Flatten(x, axis=3)\np = Softmax(r)\ny = Reshape(p, s)\nreturn y"},
    {"LargerWindowsSideBySide", "lower_conv_transpose", deconvolution("w[6,32,3,3], strides=[3,3]")},
};

class Rewrites : public testing::TestWithParam<Rewrite> {};

TEST_P(Rewrites, KeepTheNumbers) {
  const Rewrite& c = GetParam();
  const std::vector<Tensor> inputs{random_tensor({2, 6, 5, 7}, 1)};
  const auto results = [&](const kernels::Backend& backend, LoadOptions options) {
    const auto model = model_of(c.text, backend, std::move(options));
    const auto executor = model->executor({});
    EXPECT_TRUE(executor) << executor.error().message;
    return run(**executor, inputs);
  };
  bool rewritten = false;
  const auto note = [&](const std::string& pass, const graph::Graph&) { rewritten |= pass == c.pass; };
  const auto expected = results(reference(), {.disabled_passes = {c.pass}});
  for (const kernels::Backend* backend : {&reference(), &best()}) {
    rewritten = false;
    const auto actual = results(*backend, {.after_pass = note});
    EXPECT_TRUE(rewritten) << c.pass << " leaves this graph alone";
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) expect_near(actual[i].view(), expected[i].view(), backend->name());
  }
}

INSTANTIATE_TEST_SUITE_P(Passes, Rewrites, testing::ValuesIn(kRewrites), [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace serin::engine::test
