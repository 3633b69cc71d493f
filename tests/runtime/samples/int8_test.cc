// int8_test.cc: models quantised at load, end to end: small ones of the shapes that networks have, and what cannot be quantised.

#include "runtime/samples/int8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <span>

#include "kernels/backend.h"
#include "runtime/engine/describe.h"
#include "runtime/samples/made_up_tensors.h"

namespace serin::samples {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const kernels::Backend& backend() {
  static const auto made = kernels::make_cpu_backend({.onednn_path = "none"});
  return *made;
}

Result<Int8Model> try_text(std::string_view text, const SampleSource& source = {}) {
  SERIN_TRY(graph::Graph graph, graph::parse(text));
  return int8_model(std::move(graph), backend(), {}, source);
}

Int8Model quantised(std::string_view text, const SampleSource& source = {}) {
  auto made = try_text(text, source);
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

/// A data set of one NPY file in a folder of the running test.
std::filesystem::path stored_sample(const Shape& shape, std::span<const float> numbers, int set = 0) {
  const auto folder =
      std::filesystem::path(testing::TempDir()) / "serin_int8" / testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::create_directories(folder / ("test_data_set_" + std::to_string(set)));
  std::string sizes;
  for (const int64_t size : shape.dims()) sizes += std::to_string(size) + ",";
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + sizes + "), }";
  header.resize(128 - 10 - 1, ' ');
  header += '\n';
  std::ofstream file(folder / ("test_data_set_" + std::to_string(set)) / "input_0.npy", std::ios::binary);
  file << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(header.size()) << '\0' << header;
  file.write(reinterpret_cast<const char*>(numbers.data()), static_cast<std::streamsize>(numbers.size() * sizeof(float)));
  return folder;
}

/// With three random inputs in [-1, 1) stored as samples.
Int8Model calibrated(std::string_view text) {
  const auto exact = engine::Model::from_graph(*graph::parse(text), backend(), {});
  EXPECT_TRUE(exact) << exact.error().message;
  std::filesystem::path folder;
  for (int set = 0; set < 3; ++set) {
    const auto values = made_up_values(**exact, {}, static_cast<uint32_t>(set) + 1);
    EXPECT_TRUE(values);
    folder = stored_sample((*values)[0].tensor->shape, (*values)[0].tensor->span<float>(), set);
  }
  return quantised(text, {.folder = folder});
}

size_t count(const Int8Model& made, graph::Op op) { return made.model->graph().nodes(op).size(); }

/// Each step's operator with the kernel it got: "QLinearConv quant_avx512_vnni".
std::vector<std::string> kernels_of(const Int8Model& made) {
  graph::Bindings sizes;
  for (const std::string& symbol : made.model->symbols()) sizes[symbol] = 2;
  auto executor = made.model->executor(sizes);
  EXPECT_TRUE(executor) << executor.error().message;
  std::vector<std::string> kernels;
  for (const engine::StepInfo& step : engine::steps((*executor)->plan())) kernels.push_back(step.op + " " + step.kernel);
  return kernels;
}

/// All that computes on bytes has a vector kernel.
void expect_int8_kernels(const Int8Model& made) {
  for (const std::string& kernel : kernels_of(made)) {
    if (kernel.starts_with("Q") || kernel.starts_with("DynamicQ")) {
      EXPECT_THAT(kernel, HasSubstr(" quant_"));
    }
  }
}

constexpr std::string_view kResidual = R"(
x: f32[batch,3,32,32]
a = Conv(x, w1[16,3,7,7], b1[16], pads=[3,3,3,3], strides=[2,2])
an = BatchNormalization(a, g[16], s[16], mean[16], var[16])
r = Relu(an)
m = MaxPool(r, kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2])
c1 = Conv(m, w2[16,16,3,3], b2[16], pads=[1,1,1,1])
r1 = Relu(c1)
c2 = Conv(r1, w3[16,16,3,3], b3[16], pads=[1,1,1,1])
sum = Add(c2, m)
r2 = Relu(sum)
p = GlobalAveragePool(r2)
f = Flatten(p, axis=1)
y = Gemm(f, w4[10,16], b4[10], transB=1)
return y
)";

TEST(Int8Model, ResidualNetwork) {
  const Int8Model made = calibrated(kResidual);
  EXPECT_TRUE(made.on_bytes);
  EXPECT_GT(made.error, 0) << "it was compared with f32";
  EXPECT_LT(made.error, 0.03);
  EXPECT_THAT(made.why, HasSubstr("int8: 3 of 3 convolutions and 1 of 1 products on bytes; differs from fp32 by 0.0"));
  EXPECT_THAT(made.why, HasSubstr("(relative L2, the worst of 3 inputs of "));
  EXPECT_THAT(made.warning, IsEmpty());
  EXPECT_THAT(made.kept, IsEmpty());
  EXPECT_EQ(count(made, graph::Op::kQLinearConv), 3U);
  EXPECT_EQ(count(made, graph::Op::kQuantizedMatMul), 1U);
  EXPECT_EQ(count(made, graph::Op::kQuantizeLinear), 1U) << "the input, and nothing between";
  EXPECT_EQ(count(made, graph::Op::kDequantizeLinear), 0U);
  EXPECT_TRUE(made.model->batchable().yes) << made.model->batchable().why_not;
  expect_int8_kernels(made);
}

TEST(Int8Model, IsComparedOnSamplesThatItsRangesDidNotComeFrom) {
  constexpr std::string_view kConv = "x: f32[1,1,4,4]\ny = Conv(x, w[1,1,1,1]{1}, b[1]{0})\nreturn y";
  std::vector<float> numbers(16, 1.f);
  std::filesystem::path folder;
  for (int set = 0; set < 3; ++set) folder = stored_sample(Shape{1, 1, 4, 4}, numbers, set);
  std::filesystem::remove_all(folder / "test_data_set_3");  // of an earlier run
  EXPECT_LT(quantised(kConv, {.folder = folder}).error, 0.01);
  std::fill(numbers.begin(), numbers.end(), 4.f);  // four times what the ranges reach to
  stored_sample(Shape{1, 1, 4, 4}, numbers, 3);
  const Int8Model made = quantised(kConv, {.folder = folder});
  EXPECT_NEAR(made.error, 0.75, 0.01);
  EXPECT_THAT(made.why, HasSubstr("the worst of 1 inputs of "));
  EXPECT_THAT(made.warning, HasSubstr("which is much"));
}

TEST(Int8Model, NetworkOfDepthwiseConvolutionsGatesAndFactors) {
  const Int8Model made = calibrated(R"(
x: f32[batch,8,16,16]
a = Conv(x, w1[32,8,1,1], b1[32])
ah = HardSwish(a)
d = Conv(ah, w2[32,1,3,3], b2[32], group=32, pads=[1,1,1,1])
ds = Sigmoid(d)
dh = Mul(d, ds)
p = GlobalAveragePool(dh)
s1 = Conv(p, w3[8,32,1,1], b3[8])
s2 = Relu(s1)
s3 = Conv(s2, w4[32,8,1,1], b4[32])
s4 = HardSigmoid(s3)
e = Mul(dh, s4)
y = Conv(e, w5[8,32,1,1], b5[8])
z = Add(y, x)
o = Conv(z, w6[8,8,1,1], b6[8])
return o
)");
  EXPECT_LT(made.error, 0.04) << made.why;
  EXPECT_THAT(made.why, HasSubstr("6 of 6 convolutions"));
  EXPECT_EQ(count(made, graph::Op::kMul), 0U);
  EXPECT_EQ(count(made, graph::Op::kDequantizeLinear), 1U) << "the result";
  expect_int8_kernels(made);
}

TEST(Int8Model, BlockOfATransformer) {
  const Int8Model made = quantised(R"(
x: f32[batch,seq,32]
qm = MatMul(x, wq[32,32])
q = Add(bq[32], qm)
km = MatMul(x, wk[32,32])
k = Add(bk[32], km)
vm = MatMul(x, wv[32,32])
v = Add(bv[32], vm)
kt = Transpose(k, perm=[0,2,1])
s = MatMul(q, kt)
sm = Softmax(s, axis=-1)
c = MatMul(sm, v)
om = MatMul(c, wo[32,32])
o = Add(om, x)
n = LayerNormalization(o, scale[32], shift[32], axis=-1)
fm = MatMul(n, w1[32,128])
f = Add(b1[128], fm)
g = Gelu(f)
hm = MatMul(g, w2[128,32])
h = Add(b2[32], hm)
y = Add(h, n)
return y
)");
  EXPECT_LT(made.error, 0.03) << made.why;
  EXPECT_THAT(made.why, HasSubstr("int8: 6 of 6 products on bytes"));
  EXPECT_EQ(count(made, graph::Op::kDynamicQuantizeMatMul), 6U);
  EXPECT_TRUE(made.model->batchable().yes) << "rows keep their own ranges: " << made.model->batchable().why_not;
  expect_int8_kernels(made);
}

TEST(Int8Model, TheSameRowGivesTheSameBitsInAnyCompany) {
  const Int8Model made = quantised("x: f32[batch,64]\nh = MatMul(x, w[64,48])\nr = Relu(h)\ny = MatMul(r, v[48,8])\nreturn y");
  auto values = made_up_values(*made.model, {{"batch", 5}});
  ASSERT_TRUE(values);
  const auto all = made.model->run(*values);
  ASSERT_TRUE(all) << all.error().message;
  const auto rows = (*values)[0].tensor->span<float>();
  for (size_t row = 0; row < 5; ++row) {
    const auto one =
        made.model->run(std::vector{engine::Value::of(graph::make_constant(DType::kFloat32, Shape{1, 64}, rows.data() + row * 64))});
    ASSERT_TRUE(one);
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ((*one)[0].tensor->span<float>()[i], (*all)[0].tensor->span<float>()[row * 8 + i]);
  }
}

TEST(Int8Model, WithoutSamplesConvolutionsStayInFloats) {
  const Int8Model made = quantised(kResidual);
  EXPECT_TRUE(made.on_bytes) << "its product finds the ranges of its rows when it runs";
  EXPECT_EQ(count(made, graph::Op::kDynamicQuantizeMatMul), 1U);
  EXPECT_EQ(count(made, graph::Op::kQLinearConv), 0U);
  EXPECT_THAT(made.why, HasSubstr("int8: 0 of 3 convolutions and 1 of 1 products on bytes"));
  EXPECT_THAT(made.warning, HasSubstr("3 convolutions compute in fp32"));
  ASSERT_EQ(made.kept.size(), 3U);
  EXPECT_THAT(made.kept[0].why, HasSubstr("seen on samples"));

  const Int8Model nothing = quantised("x: f32[n,4,3,3]\na = Conv(x, w[4,4,1,1])\nreturn a");
  EXPECT_FALSE(nothing.on_bytes);
  EXPECT_THAT(nothing.why, HasSubstr("fp32: there are no samples"));
  EXPECT_THAT(nothing.warning, HasSubstr("1 convolutions compute in fp32"));
  EXPECT_EQ(nothing.kept.size(), 1U);
}

TEST(Int8Model, AQuantisedModelStaysAsItIs) {
  const Int8Model made = quantised(
      "x: f32[n,2]\nq, s, z = DynamicQuantizeLinear(x)\ni = MatMulInteger(q, k:i8[2,2]{1,2,3,4}, z)\nc = Cast(i, to=f32)\ny = Mul(c, "
      "s)\nreturn y");
  EXPECT_EQ(made.why, "int8: as the file was quantised");
  EXPECT_TRUE(made.on_bytes);

  const Int8Model in_floats =
      quantised("x: f32[n,2]\nq, s, z = DynamicQuantizeLinear(x)\ny = DequantizeLinear(q, s, z)\nw = MatMul(y, v[2,2])\nreturn w");
  EXPECT_EQ(in_floats.why, "fp32: the file is quantised, but nothing in it multiplies bytes");
  EXPECT_FALSE(in_floats.on_bytes);
  EXPECT_EQ(count(in_floats, graph::Op::kDynamicQuantizeMatMul), 0U);
}

TEST(Int8Model, NothingToQuantise) {
  const Int8Model made = quantised("x: i64[n,2]\ny = Add(x, x)\nreturn y");
  EXPECT_FALSE(made.on_bytes);
  EXPECT_THAT(made.why, HasSubstr("fp32: nothing in it"));
}

TEST(Int8Model, OfOperandsThatOverflowNothingIsQuantised) {
  const Int8Model made = calibrated(R"(
x: f32[n,4,3,3]
big = Mul(x, 1e30)
a = Conv(big, w[4,4,1,1])
small = Mul(a, 1e-30)
b = Conv(small, v[4,4,1,1])
return b
)");
  EXPECT_THAT(made.why, HasSubstr("int8: 1 of 2 convolutions"));
  ASSERT_EQ(made.kept.size(), 1U);
  EXPECT_EQ(made.kept[0].node, "a");
  EXPECT_THAT(made.kept[0].why, HasSubstr("'big' reaches from -"));
  EXPECT_LT(made.error, 0.03);
}

TEST(Int8Model, WhatIsNotFiniteStaysInFloats) {
  const Int8Model made = calibrated("x: f32[n,4,3,3]\nl = Log(x)\na = Conv(l, w[4,4,1,1])\nb = Conv(x, v[4,4,1,1])\nreturn a, b");
  ASSERT_EQ(made.kept.size(), 1U);
  EXPECT_EQ(made.kept[0].why, "'l' is not finite on the samples");
  EXPECT_THAT(made.warning, HasSubstr("differs from fp32 by nan"));
}

TEST(Int8Model, SamplesThatAreNotThereAreAnError) {
  const auto made = try_text(kResidual, {.folder = "/nowhere"});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kNotFound);
  EXPECT_THAT(made.error().message, HasSubstr("/nowhere"));
}

/// 64 numbers, the 5th of them as given.
std::filesystem::path samples_with(float number) {
  std::vector<float> numbers(64, 1.f);
  numbers[4] = number;
  return stored_sample({1, 64}, numbers);
}

TEST(Int8Model, SamplesThatAreNotFiniteAreRefusedByPlace) {
  constexpr std::string_view kProduct = "x: f32[n,64]\ny = MatMul(x, w[64,8])\nreturn y";
  EXPECT_TRUE(try_text(kProduct, {.folder = samples_with(2)}));
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const auto made = try_text(kProduct, {.folder = samples_with(bad)});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Code::kInvalidArgument);
    EXPECT_THAT(made.error().message, HasSubstr("input 'x' of sample 0 holds"));
    EXPECT_THAT(made.error().message, HasSubstr("at element 4"));
  }
  EXPECT_THAT(quantised(kProduct).warning, IsEmpty()) << "it has no ranges from samples";
  EXPECT_THAT(try_text(kProduct, {.folder = samples_with(2)})->warning, IsEmpty());
}

TEST(Int8Model, SamplesOfAnotherShapeNameTheInput) {
  const auto made = try_text("pixels: f32[n,63]\ny = MatMul(pixels, w[63,8])\nreturn y", {.folder = samples_with(2)});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("pixels"));
}

}  // namespace
}  // namespace serin::samples
