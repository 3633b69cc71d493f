// Operators that paddle.inference has on GPUs only, or that its optimiser makes: each must answer like the steps that it stands for. The steps
// themselves are compared with Paddle in tests/formats/paddle.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/runtime/engine/support.h"
#include "tests/runtime/formats/paddle/encode.h"

namespace serin::formats {
namespace {

using engine::test::Tensor;
using ::testing::HasSubstr;

/// A network with inputs of fixed sizes; parameters are drawn by their names.
struct Net {
  std::map<std::string, Dims> inputs, parameters;
  std::vector<Encoder> ops;  ///< the last one makes y
};

std::vector<float> drawn(std::string_view name, const Dims& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  uint32_t seed = 7;
  for (const char c : name) seed = seed * 31 + static_cast<unsigned char>(c);
  const Tensor values = engine::test::random_tensor(Shape{count}, seed);
  return values.values<float>();
}

std::vector<Tensor> answers(const Net& net) {
  const Folder folder;
  std::vector<Encoder> vars, ops;
  std::string parameters;
  std::vector<Tensor> inputs;
  for (const auto& [name, dims] : net.inputs) {
    vars.push_back(var(name, dims));
    ops.push_back(feed(name, static_cast<int64_t>(inputs.size())));
    inputs.emplace_back(Shape(dims), drawn(name, dims));
  }
  for (const auto& [name, dims] : net.parameters) {
    vars.push_back(var(name, dims, true));
    parameters += stored_tensor(kF32, dims, raw_bytes(drawn(name, dims)));
  }
  ops.insert(ops.end(), net.ops.begin(), net.ops.end());
  ops.push_back(fetch("y"));
  folder.write("m.pdmodel", program({block(vars, ops)})).write("m.pdiparams", parameters);
  const auto model = engine::Model::load(folder / "m.pdmodel", engine::test::reference(), {});
  EXPECT_TRUE(model) << model.error().message;
  if (!model) return {};
  const auto executor = (*model)->executor({});
  EXPECT_TRUE(executor) << executor.error().message;
  return executor ? engine::test::run(**executor, inputs) : std::vector<Tensor>{};
}

void expect_same(const Net& fused, std::vector<Encoder> steps) {
  Net plain = fused;
  plain.ops = std::move(steps);
  const auto actual = answers(fused), expected = answers(plain);
  ASSERT_EQ(actual.size(), 1U);
  ASSERT_EQ(expected.size(), 1U);
  engine::test::expect_near(actual[0].view(), expected[0].view(), "y");
}

// Frequent steps.

Encoder add(const std::string& x, const std::string& y, const std::string& out) {
  return op("elementwise_add", {{"X", {x}}, {"Y", {y}}}, {{"Out", {out}}});
}
Encoder matmul(const std::string& x, const std::string& y, const std::string& out, bool transposed = false) {
  return op("matmul_v2", {{"X", {x}}, {"Y", {y}}}, {{"Out", {out}}}, {attribute("trans_y", transposed ? 1 : 0)});
}
Encoder norm(const std::string& x, const std::string& scale, const std::string& bias, const std::string& out, int64_t axis = 2) {
  return op("layer_norm", {{"X", {x}}, {"Scale", {scale}}, {"Bias", {bias}}}, {{"Y", {out}}},
            {attribute("begin_norm_axis", axis), real_attribute("epsilon", 1e-5F)});
}
Encoder reshape(const std::string& x, const Dims& shape, const std::string& out) {
  return op("reshape2", {{"X", {x}}}, {{"Out", {out}}}, {attribute("shape", shape)});
}
Encoder transpose(const std::string& x, const Dims& order, const std::string& out) {
  return op("transpose2", {{"X", {x}}}, {{"Out", {out}}}, {attribute("axis", order)});
}
Encoder unary(const std::string& type, const std::string& x, const std::string& out, const std::vector<Encoder>& attributes = {}) {
  return op(type, {{"X", {x}}}, {{"Out", {out}}}, attributes);
}

constexpr int64_t kHeads = 2, kHead = 4, kWidth = kHeads * kHead;

/// From x [b, s, width], with wqkv as a matrix of three times the width, to `out`.
std::vector<Encoder> attention_steps(const std::string& x, const std::string& weight, const std::string& bias, const std::string& mask,
                                     float scale, const std::string& out) {
  std::vector<Encoder> steps{reshape(weight, {kWidth, 3 * kWidth}, "flat"),
                             matmul(x, "flat", "all"),
                             reshape(bias, {3 * kWidth}, "flat_bias"),
                             add("all", "flat_bias", "biased"),
                             reshape("biased", {0, 0, 3, kHeads, kHead}, "five"),
                             transpose("five", {2, 0, 3, 1, 4}, "first"),
                             op("unstack", {{"X", {"first"}}}, {{"Y", {"q", "k", "v"}}}, {attribute("axis", 0), attribute("num", 3)}),
                             unary("scale", "q", "qs", {real_attribute("scale", scale)}),
                             matmul("qs", "k", "scores", true)};
  steps.push_back(mask.empty() ? unary("assign", "scores", "masked") : add("scores", mask, "masked"));
  steps.push_back(unary("softmax", "masked", "weights"));
  steps.push_back(matmul("weights", "v", "mixed"));
  steps.push_back(transpose("mixed", {0, 2, 1, 3}, "back"));
  steps.push_back(reshape("back", {0, 0, kWidth}, out));
  return steps;
}

TEST(PaddleFused, MultiheadMatmul) {
  const Net net{{{"x", {2, 3, kWidth}}, {"mask", {2, kHeads, 3, 3}}},
                {{"w", {kWidth, 3, kHeads, kHead}}, {"bias", {3, kHeads, kHead}}},
                {op("multihead_matmul", {{"Input", {"x"}}, {"W", {"w"}}, {"Bias", {"bias"}}, {"BiasQK", {"mask"}}}, {{"Out", {"y"}}},
                    {attribute("head_number", kHeads), real_attribute("alpha", 0.5F)})}};
  expect_same(net, attention_steps("x", "w", "bias", "mask", 0.5F, "y"));
}

TEST(PaddleFused, Attention) {
  for (const int64_t before : {0, 1}) {
    const Net net{{{"x", {2, 3, kWidth}}},
                  {{"w", {3, kHeads, kHead, kWidth}},
                   {"bias", {3, kHeads, kHead}},
                   {"out_w", {kWidth, kWidth}},
                   {"out_b", {kWidth}},
                   {"scale", {kWidth}},
                   {"shift", {kWidth}}},
                  {op("fused_attention",
                      {{"X", {"x"}},
                       {"QKVW", {"w"}},
                       {"QKVBias", {"bias"}},
                       {"OutLinearW", {"out_w"}},
                       {"OutLinearBias", {"out_b"}},
                       {"LnScale", {"scale"}},
                       {"LnBias", {"shift"}},
                       {"Ln2Scale", {"scale"}},
                       {"Ln2Bias", {"shift"}}},
                      {{"Y", {"y"}}}, {attribute("pre_layer_norm", before)})}};
    std::vector<Encoder> steps{reshape("w", {3 * kWidth, kWidth}, "rows"), transpose("rows", {1, 0}, "columns")};
    if (before) steps.push_back(norm("x", "scale", "shift", "input"));
    for (Encoder& step : attention_steps(before ? "input" : "x", "columns", "bias", "", 0.5F, "attended")) steps.push_back(std::move(step));
    steps.push_back(matmul("attended", "out_w", "product"));
    steps.push_back(add("product", "out_b", "linear"));
    steps.push_back(add("x", "linear", before ? "y" : "sum"));
    if (!before) steps.push_back(norm("sum", "scale", "shift", "y"));
    expect_same(net, steps);
  }
}

TEST(PaddleFused, Feedforward) {
  for (const int64_t before : {0, 1}) {
    const Net net{{{"x", {2, 3, 6}}},
                  {{"w1", {6, 8}}, {"b1", {8}}, {"w2", {8, 6}}, {"b2", {6}}, {"scale", {6}}, {"shift", {6}}},
                  {op("fused_feedforward",
                      {{"X", {"x"}},
                       {"Linear1Weight", {"w1"}},
                       {"Linear1Bias", {"b1"}},
                       {"Linear2Weight", {"w2"}},
                       {"Linear2Bias", {"b2"}},
                       {"Ln1Scale", {"scale"}},
                       {"Ln1Bias", {"shift"}},
                       {"Ln2Scale", {"scale"}},
                       {"Ln2Bias", {"shift"}}},
                      {{"Out", {"y"}}}, {attribute("pre_layer_norm", before), text_attribute("act_method", "relu")})}};
    std::vector<Encoder> steps;
    if (before) steps.push_back(norm("x", "scale", "shift", "input"));
    for (Encoder& step : std::vector<Encoder>{matmul(before ? "input" : "x", "w1", "p1"), add("p1", "b1", "s1"), unary("relu", "s1", "r"),
                                              matmul("r", "w2", "p2"), add("p2", "b2", "s2"), add("x", "s2", before ? "y" : "sum")})
      steps.push_back(std::move(step));
    if (!before) steps.push_back(norm("sum", "scale", "shift", "y"));
    expect_same(net, steps);
  }
}

TEST(PaddleFused, SumsAndNormalisations) {
  const std::map<std::string, Dims> parameters{{"scale", {6}}, {"shift", {6}}, {"b", {6}}, {"w", {6, 6}}};
  const std::map<std::string, Dims> inputs{{"x", {2, 3, 6}}, {"z", {2, 3, 6}}};
  expect_same({inputs,
               parameters,
               {op("skip_layernorm", {{"X", {"x"}}, {"Y", {"z"}}, {"Scale", {"scale"}}, {"Bias", {"shift"}}}, {{"Out", {"y"}}})}},
              {add("x", "z", "sum"), norm("sum", "scale", "shift", "y")});
  expect_same({inputs,
               parameters,
               {op("fused_bias_dropout_residual_layer_norm",
                   {{"X", {"x"}}, {"Residual", {"z"}}, {"Bias", {"b"}}, {"LnScale", {"scale"}}, {"LnBias", {"shift"}}}, {{"Y", {"y"}}})}},
              {add("x", "b", "biased"), add("biased", "z", "sum"), norm("sum", "scale", "shift", "y")});
  expect_same(
      {inputs,
       parameters,
       {op("fused_fc_elementwise_layernorm",
           {{"X", {"x"}}, {"W", {"w"}}, {"Y", {"z"}}, {"Bias0", {"b"}}, {"Scale", {"scale"}}, {"Bias1", {"shift"}}}, {{"Out", {"y"}}},
           {text_attribute("activation_type", "relu")})}},
      {matmul("x", "w", "p"), add("p", "b", "s"), unary("relu", "s", "r"), add("r", "z", "sum"), norm("sum", "scale", "shift", "y")});
  expect_same({inputs, parameters, {op("fused_softmax_mask", {{"X", {"x"}}, {"Mask", {"z"}}}, {{"Out", {"y"}}})}},
              {add("x", "z", "sum"), unary("softmax", "sum", "y")});
  expect_same({inputs,
               parameters,
               {op("fc", {{"Input", {"x"}}, {"W", {"w"}}, {"Bias", {"b"}}}, {{"Out", {"y"}}},
                   {attribute("in_num_col_dims", 2), text_attribute("activation_type", "relu")})}},
              {matmul("x", "w", "p"), add("p", "b", "s"), unary("relu", "s", "y")});
  expect_same({inputs,
               parameters,
               {op("fused_gemm_epilogue", {{"X", {"x"}}, {"Y", {"w"}}, {"Bias", {"b"}}}, {{"Out", {"y"}}},
                   {attribute("trans_y", 1), text_attribute("activation", "gelu")})}},
              {matmul("x", "w", "p", true), add("p", "b", "s"), unary("gelu", "s", "y")});
}

TEST(PaddleFused, EmbeddingsAndNormalisation) {
  const auto ids = [](const std::string& name) {
    return op("fill_constant", {}, {{"Out", {name}}},
              {attribute("shape", Dims{2, 3}), attribute("dtype", kI64), real_attribute("value", 2)});
  };
  const std::vector<Encoder> start{ids("i"), ids("j"), unary("assign", "x", "unused")};
  const Net net{{{"x", {1}}}, {{"a", {5, 6}}, {"b", {4, 6}}, {"scale", {6}}, {"shift", {6}}}, {}};
  Net fused = net;
  fused.ops = start;
  fused.ops.push_back(op("fused_embedding_eltwise_layernorm",
                         {{"Ids", {"i", "j"}}, {"Embs", {"a", "b"}}, {"Scale", {"scale"}}, {"Bias", {"shift"}}}, {{"Out", {"y"}}}));
  std::vector<Encoder> steps = start;
  const auto rows = [](const std::string& table, const std::string& id, const std::string& out) {
    return op("lookup_table_v2", {{"W", {table}}, {"Ids", {id}}}, {{"Out", {out}}}, {attribute("padding_idx", -1)});
  };
  for (Encoder& step :
       std::vector<Encoder>{rows("a", "i", "ra"), rows("b", "j", "rb"), add("ra", "rb", "sum"), norm("sum", "scale", "shift", "y")})
    steps.push_back(std::move(step));
  expect_same(fused, steps);
}

TEST(PaddleFused, Convolutions) {
  const Net net{{{"x", {1, 3, 6, 6}}, {"z", {1, 4, 6, 6}}},
                {{"w", {4, 3, 3, 3}}, {"b", {4}}},
                {op("conv2d_fusion", {{"Input", {"x"}}, {"Filter", {"w"}}, {"Bias", {"b"}}, {"ResidualData", {"z"}}}, {{"Output", {"y"}}},
                    {attribute("paddings", Dims{1, 1}), text_attribute("activation", "relu")})}};
  expect_same(net, {op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"c"}}}, {attribute("paddings", Dims{1, 1})}),
                    op("elementwise_add", {{"X", {"c"}}, {"Y", {"b"}}}, {{"Out", {"s"}}}, {attribute("axis", 1)}), add("s", "z", "sum"),
                    unary("relu", "sum", "y")});
}

TEST(PaddleFused, ChannelsLast) {
  const Net net{{{"x", {1, 6, 6, 3}}},
                {{"w", {4, 3, 3, 3}}},
                {op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"y"}}}, {text_attribute("data_format", "NHWC")})}};
  expect_same(net, {transpose("x", {0, 3, 1, 2}, "t"), op("conv2d", {{"Input", {"t"}}, {"Filter", {"w"}}}, {{"Output", {"c"}}}),
                    transpose("c", {0, 2, 3, 1}, "y")});
}

/// Training with quantisation: each weight is rounded to a step of its channel's largest magnitude.
TEST(PaddleQuantised, FakeOperatorsRound) {
  const Net net{{{"x", {2, 4}}},
                {{"w", {4, 3}}},
                {op("fake_channel_wise_quantize_dequantize_abs_max", {{"X", {"w"}}}, {{"Out", {"wq"}}, {"OutScale", {"s"}}},
                    {attribute("quant_axis", 1), attribute("bit_length", 8)}),
                 matmul("x", "wq", "y")}};
  const auto weight = drawn("w", {4, 3}), x = drawn("x", {2, 4});
  const auto actual = answers(net);
  ASSERT_EQ(actual.size(), 1U);
  for (size_t row = 0; row < 2; ++row) {
    for (size_t column = 0; column < 3; ++column) {
      float largest = 0, sum = 0;
      for (size_t i = 0; i < 4; ++i) largest = std::max(largest, std::abs(weight[3 * i + column]));
      for (size_t i = 0; i < 4; ++i) sum += x[4 * row + i] * std::nearbyint(weight[3 * i + column] / largest * 127) * largest / 127;
      EXPECT_NEAR(actual[0].values<float>()[3 * row + column], sum, 1e-5);
    }
  }
}

TEST(PaddleOperators, ConvolutionsTakeTheirBiasAndActivation) {
  const auto vars = std::vector<Encoder>{var("x", {-1, 4, 8, 8}), var("b", {4}, true), var("w", {4, 4, 3, 3}, true)};
  const Folder folder;
  folder.write("m.pdmodel",
               program({block(vars, {feed("x"), op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"c"}}}),
                                     op("elementwise_add", {{"X", {"c"}}, {"Y", {"b"}}}, {{"Out", {"s"}}}, {attribute("axis", 1)}),
                                     op("hard_swish", {{"X", {"s"}}}, {{"Out", {"y"}}}), fetch("y")})}));
  folder.write("m.pdiparams",
               stored_tensor(kF32, {4}, std::string(16, '\0')) + stored_tensor(kF32, {4, 4, 3, 3}, std::string(4 * 4 * 9 * 4, '\0')));
  const auto model = engine::Model::load(folder / "m.pdmodel", engine::test::reference(), {});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_TRUE((*model)->batchable().yes);
  EXPECT_THAT(graph::print((*model)->graph()), HasSubstr("activation=HardSwish"));
}

/// As Paddle's kernel on CPUs does, so that a level of a pyramid is never empty.
TEST(PaddleOperators, AnImageWithoutProposalsHasOneOfZeros) {
  const auto proposals = [](float smallest) {
    const Net net{{{"scores", {1, 1, 2, 2}}, {"deltas", {1, 4, 2, 2}}, {"size", {1, 2}}},
                  {{"anchors", {2, 2, 1, 4}}, {"variances", {2, 2, 1, 4}}},
                  {op("generate_proposals_v2",
                      {{"Scores", {"scores"}},
                       {"BboxDeltas", {"deltas"}},
                       {"ImShape", {"size"}},
                       {"Anchors", {"anchors"}},
                       {"Variances", {"variances"}}},
                      {{"RpnRois", {"y"}}, {"RpnRoiProbs", {"p"}}, {"RpnRoisNum", {"n"}}},
                      {attribute("pre_nms_topN", 4), attribute("post_nms_topN", 4), real_attribute("nms_thresh", 0.7F),
                       real_attribute("min_size", smallest), real_attribute("eta", 1), attribute("pixel_offset", 0)})}};
    return answers(net);
  };
  const auto none = proposals(10'000);
  ASSERT_EQ(none.size(), 1U);
  EXPECT_EQ(none[0].view().shape, (Shape{1, 4}));
  EXPECT_THAT(none[0].values<float>(), ::testing::Each(0.0F));
}

}  // namespace
}  // namespace serin::formats
