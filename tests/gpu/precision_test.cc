// Models on a device in 16 bits: which steps work on them, where types and layouts change, and that the answers are those of f32 but for the rounding.
//
// The error is relative, in the L2 norm, against f32 on the reference kernels. Each step adds a rounding of one part in 2^12 (f16) or 2^9 (bf16) on the
// average, independent of the others, so that a network of twenty steps is off by four or five of them.

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "runtime/engine/describe.h"
#include "runtime/engine/layout/channels_last.h"
#include "runtime/engine/plan.h"
#include "tests/gpu/device_under_test.h"
#include "tests/runtime/engine/support.h"

namespace serin::engine {
namespace {

using test::random_tensor;
using test::Tensor;

const kernels::Backend& device_backend() {
  static const auto backend = serin::test::open_device();
  return *backend;
}

std::string_view name_of(Precision precision) {
  constexpr std::string_view kNames[] = {"fp32", "tf32", "fp16", "bf16", "int8"};
  return kNames[static_cast<size_t>(precision)];
}
double allowed(Precision precision) {
  switch (precision) {
    case Precision::kFp16: return 2e-3;
    case Precision::kBf16: return 1.5e-2;
    // A real device rounds the operands of products as to f16, and nothing else. The emulated one rounds nothing: there tf32 is f32.
    case Precision::kTf32: return serin::test::emulated() ? 1e-5 : 1e-3;
    default: return 1e-5;
  }
}

double relative_error(const Tensor& actual, const Tensor& expected) {
  double difference = 0, size = 0;
  const auto a = actual.values<float>(), b = expected.values<float>();
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (double{a[i]} - double{b[i]}) * (double{a[i]} - double{b[i]});
    size += double{b[i]} * double{b[i]};
  }
  return std::sqrt(difference / size);
}

/// "Cast Conv~ Pool~ ...": ~ where the result is of 16 bits; copies between host and device left out.
std::string kinds(const Plan& plan) {
  std::string text;
  for (const Step& step : plan.program.steps) {
    const auto kind = kernels::kOpNames[step.kernel.index()];
    const auto* generic = std::get_if<kernels::Generic>(&step.kernel);
    const bool boundary = kind == "Transfer" || (kind == "StridedCopy" && step.op == graph::Op::kIdentity);
    if (boundary) continue;
    text += (text.empty() ? "" : " ") + std::string(generic ? generic->name : kind);
    if (dtype_size(plan.program.tensor(step.outputs[0]).dtype) == 2) text += "~";
  }
  return text;
}

/// Runs the text on the reference in f32 and on the device in `precision`, three times; answers the kinds of its steps there.
std::string run(std::string_view text, const std::vector<Tensor>& inputs, Precision precision, const graph::Bindings& bindings = {}) {
  const auto exact = test::model_of(text);
  const auto model = test::model_of(text, test::best(), {.device = &device_backend(), .precision = precision});
  if (!exact || !model) return "no model";
  auto expected = exact->executor(bindings), actual = model->executor(bindings);
  if (!expected || !actual) return actual ? "no executor" : actual.error().message;
  const std::vector<Tensor> wanted = test::run(**expected, inputs);
  for (int i = 0; i < 3; ++i) {
    const std::vector<Tensor> got = test::run(**actual, inputs);
    for (size_t output = 0; output < wanted.size(); ++output) {
      EXPECT_EQ(dtype_name(got[output].view().dtype), dtype_name(wanted[output].view().dtype));
      if (wanted[output].view().dtype == DType::kFloat32)
        EXPECT_LE(relative_error(got[output], wanted[output]), allowed(precision)) << name_of(precision) << " output " << output;
      else
        test::expect_near(got[output].view(), wanted[output].view(), "not a float");
    }
  }

  return kinds((*actual)->plan());
}

constexpr Precision kHalves[] = {Precision::kFp16, Precision::kBf16};

constexpr const char* kResNet = R"(
  x: f32[2,3,24,24]
  a = Conv(x, w1[16,3,7,7], b1[16], strides=[2,2], pads=[3,3,3,3])
  b = Relu(a)
  c = MaxPool(b, kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1])
  d = Conv(c, w2[16,16,3,3], b2[16], pads=[1,1,1,1])
  e = Relu(d)
  f = Conv(e, w3[16,16,3,3], b3[16], pads=[1,1,1,1])
  g = Add(f, c)
  h = Relu(g)
  i = Conv(h, w4[32,16,1,1], b4[32], strides=[2,2])
  j = Conv(h, w5[32,16,3,3], b5[32], strides=[2,2], pads=[1,1,1,1])
  k = Add(i, j)
  l = Relu(k)
  m = GlobalAveragePool(l)
  n = Flatten(m)
  o = Gemm(n, w6[32,10], b6[10])
  return o
)";

TEST(Precision, AResNetChangesTypeAndLayoutOnlyAtItsEnds) {
  for (const Precision precision : kHalves) {
    EXPECT_EQ(run(kResNet, {random_tensor({2, 3, 24, 24}, 1)}, precision),
              "Cast~ StridedCopy~ Conv~ Pool~ Conv~ Conv~ Conv~ Conv~ Reduce~ MatMul~ Cast");
  }
}

TEST(Precision, Tf32KeepsTheTypesAndHasChannelsLast) {
  EXPECT_EQ(run(kResNet, {random_tensor({2, 3, 24, 24}, 1)}, Precision::kTf32), "StridedCopy Conv Pool Conv Conv Conv Conv Reduce MatMul");
  EXPECT_EQ(run(kResNet, {random_tensor({2, 3, 24, 24}, 1)}, Precision::kFp32), "Conv Pool Conv Conv Conv Conv Reduce MatMul");
}

TEST(Precision, AMobileNetStaysInsideThroughSqueezeAndExcitation) {
  const char* const text = R"(
    x: f32[1,3,20,20]
    a = Conv(x, w1[16,3,3,3], b1[16], strides=[2,2], pads=[1,1,1,1])
    b = HardSwish(a)
    c = Conv(b, w2[40,16,1,1], b2[40])
    d = HardSwish(c)
    e = Conv(d, w3[40,1,5,5], b3[40], group=40, pads=[2,2,2,2])
    p = GlobalAveragePool(e)
    q = Conv(p, w4[8,40,1,1], b4[8])
    r = Relu(q)
    s = Conv(r, w5[40,8,1,1], b5[40])
    t = HardSigmoid(s)
    u = Mul(e, t)
    v = HardSwish(u)
    w = Conv(v, w6[16,40,1,1], b6[16])
    y = Add(w, b)
    g = GlobalAveragePool(y)
    h = Flatten(g)
    o = Gemm(h, w7[16,10], b7[10])
    return o
  )";
  for (const Precision precision : kHalves) {
    EXPECT_EQ(run(text, {random_tensor({1, 3, 20, 20}, 1)}, precision),
              "Cast~ StridedCopy~ Conv~ Conv~ Conv~ Reduce~ Conv~ Conv~ Pointwise~ Conv~ Reduce~ MatMul~ Cast");
  }
}

TEST(Precision, AVisionTransformerTakesItsTokensFromTheImageAsTheyLie) {
  const char* const text = R"(
    x: f32[2,3,16,16]
    a = Conv(x, w1[32,3,4,4], b1[32], strides=[4,4])
    b = Reshape(a, i64{2,32,16})
    c = Transpose(b, perm=[0,2,1])
    d = Add(c, w2[1,16,32])
    e = LayerNormalization(d, w3[32], b3[32])
    q = MatMul(e, w4[32,32])
    k = MatMul(e, w5[32,32])
    v = MatMul(e, w6[32,32])
    y = Attention(q, k, v, q_num_heads=4, kv_num_heads=4)
    f = MatMul(y, w7[32,32])
    g = Add(f, d)
    h = ReduceMean(g, i64{1}, keepdims=0)
    o = MatMul(h, w8[32,10])
    return o
  )";
  for (const Precision precision : kHalves) {
    const std::string steps = run(text, {random_tensor({2, 3, 16, 16}, 1)}, precision);
    EXPECT_EQ(steps, "Cast~ StridedCopy~ Conv~ Binary~ LayerNorm~ MatMul~ MatMul~ MatMul~ Attention~ MatMul~ Reduce~ MatMul~ Cast");
  }
}

TEST(Precision, ABertKeepsItsMaskAndItsPositions) {
  const char* const text = R"(
    ids: i64[2,12]
    mask: i64[2,12]
    a = Gather(table[50,32], ids)
    p = Gather(positions[12,32], i64{0,1,2,3,4,5,6,7,8,9,10,11})
    b = Add(a, p)
    c = LayerNormalization(b, w1[32], b1[32])
    m = Cast(mask, to="f32")
    n = Sub(1.0, m)
    l = Mul(n, -3.4e38)
    u = Unsqueeze(l, i64{1,2})
    q = MatMul(c, w2[32,32])
    k = MatMul(c, w3[32,32])
    v = MatMul(c, w4[32,32])
    y = Attention(q, k, v, u, q_num_heads=4, kv_num_heads=4)
    d = MatMul(y, w5[32,32])
    e = Add(d, c)
    f = LayerNormalization(e, w6[32], b6[32])
    g = MatMul(f, w7[32,64])
    h = Gelu(g)
    i = MatMul(h, w8[64,32])
    j = Add(i, f)
    return j
  )";
  std::vector<int64_t> ids, mask;
  for (int64_t i = 0; i < 24; ++i) ids.push_back(i * 7 % 50), mask.push_back(i % 12 < 9);
  for (const Precision precision : kHalves) {
    const std::string steps = run(text, {Tensor({2, 12}, ids), Tensor({2, 12}, mask)}, precision);
    EXPECT_THAT(steps, testing::HasSubstr("Attention~")) << steps;
    EXPECT_THAT(steps, testing::HasSubstr("Gather~")) << steps;
    EXPECT_THAT(steps, testing::EndsWith("MatMul~ Cast")) << steps;
    EXPECT_EQ(steps.find("Cast~ Cast"), std::string::npos) << "the mask stays f32: " << steps;
  }
}

/// As transformers export it: a mask of keys, joined with one of queries that hides none, and repeated. Attention reads the mask of keys.
TEST(Precision, AMaskOfKeysStaysAsSmallAsItIs) {
  const char* const text = R"(
    x: f32[2,12,32]
    mask: i64[2,12]
    m = Cast(mask, to="bool")
    keys = Unsqueeze(m, i64{1,2})
    seen = GreaterOrEqual(i64{0,1,2,3,4,5,6,7,8,9,10,11}, i64{0})
    queries = Unsqueeze(seen, i64{0,1,3})
    both = And(queries, keys)
    all = Expand(both, i64{2,1,12,12})
    q = MatMul(x, w1[32,32])
    k = MatMul(x, w2[32,32])
    v = MatMul(x, w3[32,32])
    y = Attention(q, k, v, all, q_num_heads=4, kv_num_heads=4)
    return y
  )";
  std::vector<int64_t> mask;
  for (int64_t i = 0; i < 24; ++i) mask.push_back(i % 12 < 9 - i / 12);
  for (const Precision precision : kHalves)
    EXPECT_EQ(run(text, {random_tensor({2, 12, 32}, 1), Tensor({2, 12}, mask)}, precision),
              "Cast Cast~ MatMul~ MatMul~ MatMul~ Attention~ Cast");
}

TEST(Precision, AnglesStayF32) {
  const char* const text = R"(
    positions: f32[1,1,300]
    x: f32[1,300,32]
    a = MatMul(w1[1,16,1], positions)
    b = Sin(a)
    c = MatMul(x, w2[32,32])
    return b, c
  )";
  std::vector<float> positions(300);
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<float>(i);
  for (const Precision precision : kHalves)
    EXPECT_EQ(run(text, {Tensor({1, 1, 300}, positions), random_tensor({1, 300, 32}, 1)}, precision), "MatMul Unary Cast~ MatMul~ Cast");
}

TEST(Precision, BoxesStayF32) {
  const char* const text = R"(
    i: i64[5]
    a = Gather(anchors[100,4], i)
    b = Mul(a, 800.0)
    return b
  )";
  for (const Precision precision : kHalves)
    EXPECT_EQ(run(text, {Tensor({5}, std::vector<int64_t>{3, 99, 0, 41, 7})}, precision), "Gather Binary");
}

TEST(Precision, WhatTheDeviceLacksRunsInF32) {
  for (const Precision precision : kHalves) {
    const std::string steps = run(R"(
      x: f32[1,8,6,6]
      a = Conv(x, w1[8,8,3,3], pads=[1,1,1,1])
      b = LRN(a, size=3)
      c = Conv(b, w2[8,8,3,3], pads=[1,1,1,1])
      return c
    )",
                                  {random_tensor({1, 8, 6, 6}, 1)}, precision);
    EXPECT_EQ(steps, "Cast~ StridedCopy~ Conv~ StridedCopy~ Cast LRN Cast~ StridedCopy~ Conv~ StridedCopy~ Cast");
  }
}

TEST(Precision, WeightsTakeHalfTheMemoryOnceForAllSizes) {
  if (!serin::test::emulated()) GTEST_SKIP() << "counts what the emulated device holds";
  const char* const text = R"(
    x: f32[batch,64]
    a = MatMul(x, w1[64,512])
    b = Relu(a)
    c = MatMul(b, w2[512,64])
    return c
  )";
  const auto held = [&](Precision precision) {
    const auto model = test::model_of(text, test::best(), {.device = &device_backend(), .precision = precision});
    auto one = model->executor({{"batch", 1}}), four = model->executor({{"batch", 4}});
    EXPECT_TRUE(one && four);
    return model->device_bytes().weights;
  };
  const size_t wide = held(Precision::kFp32);
  EXPECT_GE(wide, size_t{2} * 64 * 512 * 4);
  EXPECT_EQ(held(Precision::kFp16), wide / 2);
}

// ---- layout ----

struct Layout {
  int copies, convolutions_last;
};

void expect_layout(std::string_view text, const std::vector<Shape>& inputs, Layout expected) {
  std::vector<Tensor> tensors;
  for (const Shape& shape : inputs) tensors.push_back(random_tensor(shape, static_cast<uint32_t>(tensors.size() + 1)));
  const auto exact = test::model_of(text);
  const auto wanted = test::run(**exact->executor({}), tensors);
  for (const bool on : {true, false}) {
    LoadOptions options{.device = &device_backend(), .precision = Precision::kTf32};  // on the emulated device tf32 is f32
    if (!on) options.disabled_passes.emplace(kChannelsLastPass);
    const auto model = test::model_of(text, test::best(), options);
    auto executor = model->executor({});
    ASSERT_TRUE(executor) << executor.error().message;

    const auto got = test::run(**executor, tensors);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (serin::test::emulated()) test::expect_near(got[i].view(), wanted[i].view(), on ? "channels last" : "plain");
    }
    if (!on) continue;
    const Plan& plan = (*executor)->plan();
    const auto is_copy = [](const Step& step) {
      return std::holds_alternative<kernels::StridedCopy>(step.kernel) && step.op != graph::Op::kIdentity;
    };
    const auto is_last = [](const Step& step) {
      const auto* conv = std::get_if<kernels::Conv>(&step.kernel);
      return conv && conv->channels_last;
    };
    EXPECT_EQ(std::ranges::count_if(plan.program.steps, is_copy), expected.copies) << describe(plan);
    EXPECT_EQ(std::ranges::count_if(plan.program.steps, is_last), expected.convolutions_last) << describe(plan);
  }
}

TEST(ChannelsLast, JoinsPadsAndSplits) {
  expect_layout(R"(
    x: f32[2,4,9,7]
    a = Conv(x, w1[8,4,3,3], pads=[1,1,1,1])
    b = Conv(x, w2[6,4,1,1])
    c = Concat(a, b, axis=1)
    d = Pad(c, i64{0,0,1,0,0,0,0,2})
    e, f = Split(d, i64{6,8}, axis=1)
    g = Conv(e, w3[5,6,3,3])
    h = Conv(f, w4[5,8,3,3])
    i = Add(g, h)
    return i
  )",
                {{2, 4, 9, 7}}, {4, 4});  // in, two parts, out
}

TEST(ChannelsLast, EnlargesAndNormalisesAndFindsTheLargest) {
  expect_layout(R"(
    x: f32[1,4,5,6]
    a = Conv(x, w1[8,4,3,3], pads=[1,1,1,1])
    s = Sigmoid(a)
    b = BatchNormalization(s, w2[8], b2[8], b3[8], f32{1,2,1,1,3,1,1,1})
    c = Resize(b, _, f32{1,1,2,2}, mode=nearest, coordinate_transformation_mode=asymmetric, nearest_mode=floor)
    d = Conv(c, w3[5,8,1,1])
    e = ArgMax(d, axis=1)
    f = Softmax(d, axis=1)
    return e, f
  )",
                {{1, 4, 5, 6}}, {3, 2});  // in, enlarged, out
}

TEST(ChannelsLast, ResizesBetweenPixels) {
  expect_layout(R"(
    x: f32[2,4,5,6]
    a = Conv(x, w1[8,4,3,3], pads=[1,1,1,1])
    b = Resize(a, _, f32{1,1,2,3}, mode=linear, coordinate_transformation_mode=half_pixel)
    c = Conv(b, w2[4,8,1,1])
    d = Resize(c, _, _, i64{2,4,7,9}, mode=cubic)
    e = Conv(d, w3[4,4,1,1])
    return e
  )",
                {{2, 4, 5, 6}}, {2, 3});
}

TEST(ChannelsLast, ReducesAnyAxes) {
  expect_layout(R"(
    x: f32[2,4,5,6]
    a = Conv(x, w1[8,4,1,1])
    b = ReduceMean(a, i64{1}, keepdims=1)
    c = ReduceMax(a, i64{2,3}, keepdims=0)
    d = ReduceMean(a, i64{3}, keepdims=0)
    e = Mul(a, b)
    f = ReduceMin(e, i64{1,2,3}, keepdims=0)
    return c, d, f
  )",
                {{2, 4, 5, 6}}, {2, 1});  // in, and d keeps channels and rows
}

TEST(ChannelsLast, ATransposeOfTheModelIsNoCopy) {
  expect_layout(R"(
    x: f32[2,4,6,6]
    a = Conv(x, w1[8,4,3,3], pads=[1,1,1,1])
    b = Transpose(a, perm=[0,2,3,1])
    c = LayerNormalization(b, w2[8], b2[8])
    d = MatMul(c, w3[8,8])
    e = Transpose(d, perm=[0,3,1,2])
    f = Add(e, a)
    g = Conv(f, w4[3,8,1,1])
    return g
  )",
                {{2, 4, 6, 6}}, {2, 2});  // in, out
}

TEST(ChannelsLast, OperandsOfEveryShapeBroadcast) {
  expect_layout(R"(
    x: f32[2,4,5,6]
    y: f32[2,1,5,6]
    z: f32[4,1,1]
    u: f32[5,6]
    v: f32[6]
    a = Conv(x, w1[4,4,1,1])
    b = Mul(a, y)
    c = Add(b, z)
    d = Sub(c, u)
    e = Mul(d, v)
    f = Add(e, w2[1,4,5,6])
    g = Mul(f, 0.5)
    h = Add(g, x)
    return h
  )",
                {{2, 4, 5, 6}, {2, 1, 5, 6}, {4, 1, 1}, {5, 6}, {6}}, {2, 1});
}

TEST(ChannelsLast, AnOutputInBetweenIsCopiedOnce) {
  expect_layout(R"(
    x: f32[1,4,5,5]
    a = Conv(x, w1[4,4,3,3], pads=[1,1,1,1])
    b = Relu(a)
    c = Conv(b, w2[4,4,3,3], pads=[1,1,1,1])
    d = Reshape(c, i64{1,100})
    return b, c, d
  )",
                {{1, 4, 5, 5}}, {3, 2});
}

}  // namespace
}  // namespace serin::engine
