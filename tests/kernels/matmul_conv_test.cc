// MatMul and Conv against the reference: our own rows on every instruction set, and oneDNN's where its plugin was built.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "tests/kernels/harness.h"

namespace serin::kernels::test {
namespace {

constexpr Tolerance kSums{1e-5, 1e-5};  // sums of terms of both signs: measured against the largest result

struct Library {
  const char* name;
  Isa isa;
  bool onednn;
};

class Products : public testing::TestWithParam<Library> {
 protected:
  void SetUp() override {
    if (GetParam().isa > best_isa()) GTEST_SKIP() << "this machine has no " << isa_name(GetParam().isa);
    if (!GetParam().onednn) return;
    if (std::string(SERIN_ONEDNN_PLUGIN).empty()) GTEST_SKIP() << "built without oneDNN";
    static const std::unique_ptr<Backend> with_onednn = make_cpu_backend({.onednn_path = SERIN_ONEDNN_PLUGIN}, &note());
    onednn_ = with_onednn.get();
    ASSERT_EQ(note().find("no oneDNN"), std::string::npos) << note();
  }
  /// `rare`: a form for which oneDNN has only its reference implementation, so that it may be left to us.
  void expect_match(const Case& c, bool rare = false) {
    SCOPED_TRACE(c.constants ? "constant" : "dynamic");
    const auto rows = expect_rows_match_reference(used(), c, kSums);
    if (!onednn_ || rare) return;
    // It refuses what it cannot do, and nothing else: shapes that vary and tensors without elements.
    const bool empty = std::ranges::any_of(c.inputs, [](const Tensor& x) { return x.shape().elements() == 0; });
    EXPECT_EQ(std::ranges::count(rows, "onednn") == 1, !empty && c.bound == 0) << c.str();
  }
  const Backend& used() const { return onednn_ ? *onednn_ : backend(GetParam().isa); }

 private:
  static std::string& note() {
    static std::string text;
    return text;
  }
  const Backend* onednn_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(On, Products,
                         testing::Values(Library{"scalar", Isa::kScalar, false}, Library{"avx2", Isa::kAvx2, false},
                                         Library{"avx512", Isa::kAvx512, false}, Library{"onednn", Isa::kScalar, true}),
                         [](const auto& test) { return std::string(test.param.name); });

Shape swapped(Shape shape) {
  std::swap(shape[shape.rank() - 1], shape[shape.rank() - 2]);
  return shape;
}

const Epilogue kEpilogues[] = {{},
                               {.activation = UnaryFn::kRelu},
                               {.activation = UnaryFn::kGelu, .residual = true},
                               {.activation = UnaryFn::kClip, .beta = 6.f},
                               {.activation = UnaryFn::kSilu},
                               {.activation = UnaryFn::kHardSwish, .residual = true},
                               {.activation = UnaryFn::kTanh}};

TEST_P(Products, MatMulOfEverySize) {
  for (const int64_t m : {0, 1, 2, 6, 13, 14, 15, 29}) {
    for (const int64_t n : {1, 10, 16, 31, 33, 64, 100}) {
      for (const int64_t k : {0, 1, 7, 64}) {
        for (const uint32_t constants : {0b00u, 0b10u}) {
          expect_match({.op = MatMul{},
                        .inputs = {random_tensor({m, k}, 1), random_tensor({k, n}, 2)},
                        .outputs = {{kF32, {m, n}}},
                        .constants = constants});
        }
      }
    }
  }
  const Case deep{.op = MatMul{},
                  .inputs = {random_tensor({20, 1300}, 1), random_tensor({1300, 50}, 2)},
                  .outputs = {{kF32, {20, 50}}},
                  .constants = 0b10};
  expect_match(deep);  // more than one block of k
}

TEST_P(Products, MatMulOfDoublesAndIntegers) {
  if (GetParam().onednn) GTEST_SKIP() << "oneDNN multiplies f32";
  for (const DType dtype : {DType::kFloat64, DType::kInt32, DType::kUInt32, DType::kInt64, DType::kUInt64}) {
    const bool is_signed = dtype != DType::kUInt32 && dtype != DType::kUInt64;
    const auto check = [&](const MatMul& op, const Shape& a, const Shape& b, const Shape& y) {
      const auto numbers = [&](const Shape& shape, uint32_t seed) {
        Tensor x = random_integers(dtype, shape, seed, is_signed ? -2'000'000'000 : 0, 2'000'000'000);  // products of integers wrap
        if (dtype == DType::kFloat64) {
          for (double& element : x.view().span<double>()) element /= 7e8;
        }
        return x;
      };
      const Case c{.op = op, .inputs = {numbers(a, 1), numbers(b, 2)}, .outputs = {{dtype, y}}};
      const auto rows =
          expect_rows_match_reference(used(), c, {dtype == DType::kFloat64 ? 1e-12 : 0, dtype == DType::kFloat64 ? 1e-13 : 0});
      EXPECT_EQ(rows.size(), 1u) << c.str();
    };
    for (const int64_t m : {0, 1, 5, 8, 17}) {
      for (const int64_t n : {1, 7, 16, 33}) {
        for (const int64_t k : {0, 1, 20}) check({}, {m, k}, {k, n}, {m, n});
      }
    }
    check({.transpose_a = true}, {9, 5}, {9, 21}, {5, 21});
    check({.transpose_b = true}, {5, 9}, {21, 9}, {5, 21});
    check({}, {2, 1, 5, 9}, {3, 9, 21}, {2, 3, 5, 21});
    check({.transpose_a = true, .transpose_b = true}, {3, 9, 5}, {21, 9}, {3, 5, 21});
  }
}

TEST_P(Products, MatMulTransposed) {
  const Shape a{9, 21}, b{21, 34};
  for (const int form : {0, 1, 2, 3}) {
    for (const uint32_t constants : {0b00u, 0b10u}) {
      const MatMul op{.transpose_a = (form & 1) != 0, .transpose_b = (form & 2) != 0, .alpha = form == 3 ? 0.25f : 1.f};
      expect_match({.op = op,
                    .inputs = {random_tensor(form & 1 ? swapped(a) : a, 1), random_tensor(form & 2 ? swapped(b) : b, 2)},
                    .outputs = {{kF32, {9, 34}}},
                    .constants = constants});
    }
  }
}

TEST_P(Products, MatMulInBatches) {
  const struct {
    Shape a, b, y;
  } forms[] = {{{2, 3, 5, 7}, {2, 3, 7, 9}, {2, 3, 5, 9}}, {{2, 3, 5, 7}, {7, 9}, {2, 3, 5, 9}}, {{5, 7}, {4, 7, 9}, {4, 5, 9}},
               {{2, 1, 5, 7}, {3, 7, 9}, {2, 3, 5, 9}},    {{3, 1, 7}, {1, 7, 9}, {3, 1, 9}},    {{0, 5, 7}, {0, 7, 9}, {0, 5, 9}}};
  for (const auto& form : forms) {
    for (const uint32_t constants : {0b00u, 0b10u}) {
      expect_match({.op = MatMul{},
                    .inputs = {random_tensor(form.a, 1), random_tensor(form.b, 2)},
                    .outputs = {{kF32, form.y}},
                    .constants = constants});
    }
  }
}

TEST_P(Products, MatMulEpilogues) {
  const Shape biases[] = {{34}, {1, 34}, {9, 34}, {9, 1}, {1}, {}};
  for (const Epilogue& epilogue : kEpilogues) {
    for (const Shape& bias : biases) {
      const MatMul op{.alpha = 0.5f, .bias = true, .epilogue = epilogue};
      Case c{.op = op,
             .inputs = {random_tensor({9, 21}, 1), random_tensor({21, 34}, 2), random_tensor(bias, 3)},
             .outputs = {{kF32, {9, 34}}},
             .constants = 0b10};
      if (epilogue.residual) c.inputs.push_back(random_tensor({9, 34}, 4));
      expect_match(c, /*rare=*/bias == Shape{9, 1});
    }
    Case batched{.op = MatMul{.bias = true, .epilogue = epilogue},
                 .inputs = {random_tensor({4, 9, 21}, 1), random_tensor({21, 34}, 2), random_tensor({34}, 3)},
                 .outputs = {{kF32, {4, 9, 34}}},
                 .constants = 0b110};
    if (epilogue.residual) batched.inputs.push_back(random_tensor({4, 9, 34}, 4));
    expect_match(batched);
  }
}

TEST_P(Products, MatMulOfFewerRowsThanPreparedFor) {
  for (const uint32_t constants : {0b00u, 0b10u}) {
    expect_match({.op = MatMul{.bias = true},
                  .inputs = {random_tensor({3, 21}, 1), random_tensor({21, 34}, 2), random_tensor({1, 34}, 3)},
                  .outputs = {{kF32, {3, 34}}},
                  .constants = constants | 0b100,
                  .bound = 13});
  }
}

struct ConvForm {
  Shape x, weight;
  std::vector<int64_t> strides, dilations, pads;
  int64_t group;
  Shape y;
};

const ConvForm kConvs[] = {
    {{1, 3, 8, 8}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1, {1, 4, 8, 8}},
    {{2, 1, 8, 8}, {8, 1, 3, 3}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 1, {2, 8, 6, 6}},
    {{1, 16, 14, 14}, {32, 16, 1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 1, {1, 32, 14, 14}},
    {{1, 16, 13, 11}, {17, 16, 3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 1, {1, 17, 7, 6}},
    {{1, 8, 15, 20}, {5, 8, 3, 2}, {1, 3}, {2, 1}, {2, 0, 2, 1}, 1, {1, 5, 15, 7}},
    {{2, 12, 10, 10}, {12, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 12, {2, 12, 10, 10}},  // depthwise
    {{1, 32, 9, 9}, {32, 1, 5, 5}, {2, 2}, {1, 1}, {2, 2, 2, 2}, 32, {1, 32, 5, 5}},
    {{1, 8, 6, 6}, {12, 2, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 4, {1, 12, 6, 6}},    // grouped
    {{1, 64, 5, 5}, {20, 64, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1, {1, 20, 5, 5}},  // more than one block of k
    {{2, 6, 40}, {9, 6, 5}, {1}, {1}, {2, 2}, 1, {2, 9, 40}},                         // one spatial axis
    {{1, 3, 30, 30}, {16, 3, 7, 7}, {2, 2}, {1, 1}, {3, 3, 3, 3}, 1, {1, 16, 15, 15}},
    {{1, 2, 3, 3}, {2, 2, 3, 3}, {1, 1}, {1, 1}, {5, 5, 5, 5}, 1, {1, 2, 11, 11}},  // mostly padding
    {{1, 2, 0, 3}, {2, 2, 2, 2}, {1, 1}, {1, 1}, {1, 0, 1, 0}, 1, {1, 2, 1, 2}},    // nothing but padding
    {{0, 3, 8, 8}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1, {0, 4, 8, 8}},
    {{3, 7, 4, 4}, {19, 7, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1, {3, 19, 4, 4}},        // rows of a quarter of a vector
    {{1, 4, 3, 70}, {15, 4, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1, {1, 15, 3, 70}},      // rows of several
    {{2, 5, 19, 1}, {6, 5, 3, 1}, {2, 1}, {1, 1}, {1, 0, 1, 0}, 1, {2, 6, 10, 1}},        // columns
    {{1, 10, 9, 40}, {33, 10, 1, 1}, {2, 2}, {1, 1}, {0, 0, 0, 0}, 1, {1, 33, 5, 20}},    // every other pixel
    {{1, 6, 5, 100}, {8, 6, 2, 3}, {3, 4}, {1, 2}, {1, 0, 0, 3}, 1, {1, 8, 2, 25}},       // gaps and steps
    {{2, 13, 21, 37}, {13, 1, 3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 13, {2, 13, 11, 19}},  // depthwise, every other pixel
    {{1, 5, 7, 50}, {5, 1, 3, 3}, {1, 3}, {2, 2}, {2, 2, 2, 2}, 5, {1, 5, 7, 17}},
    {{2, 9, 33}, {9, 1, 5}, {1}, {1}, {2, 2}, 9, {2, 9, 33}},
};

TEST_P(Products, Conv) {
  for (const ConvForm& form : kConvs) {
    for (const Epilogue& epilogue : kEpilogues) {
      const bool bias = epilogue.activation != UnaryFn::kTanh;
      const Conv op{form.strides, form.dilations, form.pads, form.group, bias, epilogue};
      Case c{.op = op,
             .inputs = {random_tensor(form.x, 1), random_tensor(form.weight, 2, 0.3f)},
             .outputs = {{kF32, form.y}},
             .constants = 0b10};
      if (bias) c.inputs.push_back(random_tensor({form.weight[0]}, 3));
      if (bias) c.constants |= 0b100;
      if (epilogue.residual) c.inputs.push_back(random_tensor(form.y, 4));
      expect_match(c, /*rare=*/epilogue.residual && form.weight[1] < 3);
    }
  }
}

TEST_P(Products, ConvWhoseWeightIsComputed) {
  for (const ConvForm& form : {kConvs[0], kConvs[5]}) {
    expect_match({.op = Conv{form.strides, form.dilations, form.pads, form.group},
                  .inputs = {random_tensor(form.x, 1), random_tensor(form.weight, 2)},
                  .outputs = {{kF32, form.y}}});
  }
}

TEST_P(Products, NanIsNeverHidden) {
  for (const UnaryFn fn : {UnaryFn::kIdentity, UnaryFn::kRelu, UnaryFn::kLeakyRelu, UnaryFn::kClip, UnaryFn::kElu, UnaryFn::kTanh,
                           UnaryFn::kSigmoid, UnaryFn::kSilu, UnaryFn::kHardSigmoid, UnaryFn::kHardSwish, UnaryFn::kGelu,
                           UnaryFn::kGeluTanh, UnaryFn::kSoftplus, UnaryFn::kExp, UnaryFn::kAbs}) {
    const Epilogue epilogue{.activation = fn, .alpha = 0.5f, .beta = 6.f};
    Tensor a = random_tensor({3, 40}, 1), x = random_tensor({1, 16, 5, 5}, 2);
    a.view().as<float>()[45] = x.view().as<float>()[300] = std::numeric_limits<float>::quiet_NaN();
    SCOPED_TRACE("function " + std::to_string(static_cast<int>(fn)));
    expect_match(
        {.op = MatMul{.epilogue = epilogue}, .inputs = {a, random_tensor({40, 20}, 3)}, .outputs = {{kF32, {3, 20}}}, .constants = 0b10});
    expect_match({.op = Conv{.strides = {1, 1}, .dilations = {1, 1}, .pads = {1, 1, 1, 1}, .epilogue = epilogue},
                  .inputs = {x, random_tensor({16, 16, 3, 3}, 4)},
                  .outputs = {{kF32, {1, 16, 5, 5}}},
                  .constants = 0b10});
  }
}

TEST_P(Products, OneKernelRunsInSeveralThreadsAtOnce) {
  const ConvForm& form = kConvs[2];
  Case c{.op = Conv{form.strides, form.dilations, form.pads, form.group},
         .inputs = {random_tensor(form.x, 1), random_tensor(form.weight, 2)},
         .outputs = {{kF32, form.y}},
         .constants = 0b10};
  PackedWeights weights;
  PrepareContext context{&weights};
  const Prepared prepared = used().prepare(c.describe(), context);
  const Tensor expected = run_reference(c)[0];
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int run = 0; run < 20; ++run) expect_near(run_kernel(*prepared.kernel, c)[0], expected, kSums, std::string(prepared.name));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Products, EqualInputsGiveEqualBits) {
  const ConvForm& form = kConvs[3];
  const Case conv{.op = Conv{form.strides, form.dilations, form.pads, form.group},
                  .inputs = {random_tensor(form.x, 1), random_tensor(form.weight, 2)},
                  .outputs = {{kF32, form.y}},
                  .constants = 0b10};
  const Case matmul{.op = MatMul{}, .inputs = {random_tensor({20, 1300}, 1), random_tensor({1300, 50}, 2)}, .outputs = {{kF32, {20, 50}}}};
  for (const Case& c : {conv, matmul}) {
    const auto run = [&] {
      PackedWeights weights;
      PrepareContext context{&weights};
      return run_kernel(*used().prepare(c.describe(), context).kernel, c)[0].values<float>();
    };
    EXPECT_EQ(run(), run());
  }
}

TEST_P(Products, TwoKernelsOfOneModelShareTheirWeights) {
  PackedWeights weights;
  PrepareContext context{&weights};
  const Tensor weight = random_tensor({64, 100}, 1);
  const OpDesc desc{MatMul{}, {{kF32, {8, 64}}, {kF32, {64, 100}, false, weight.view().data, 9}}, {{kF32, {8, 100}}}};
  const Prepared first = used().prepare(desc, context);
  EXPECT_EQ(first.kernel->packed_inputs(), 0b10u) << first.name;
  const size_t bytes = weights.bytes();
  EXPECT_GE(bytes, 64 * 100 * sizeof(float));
  const Prepared second = used().prepare(desc, context);
  EXPECT_EQ(weights.bytes(), bytes);
}

TEST(Onednn, IsNamedWithItsImplementation) {
  if (std::string(SERIN_ONEDNN_PLUGIN).empty()) GTEST_SKIP() << "built without oneDNN";
  std::string note;
  const auto made = make_cpu_backend({.onednn_path = SERIN_ONEDNN_PLUGIN}, &note);
  EXPECT_NE(note.find("oneDNN 3."), std::string::npos) << note;
  PackedWeights weights;
  PrepareContext context{&weights};
  const OpDesc desc{MatMul{}, {{kF32, {8, 64}}, {kF32, {64, 100}}}, {{kF32, {8, 100}}}};
  const Prepared prepared = made->prepare(desc, context);
  EXPECT_EQ(prepared.name.substr(0, 7), "onednn:") << prepared.name;
  EXPECT_EQ(prepared.name.find("ref"), std::string::npos) << prepared.name;
}

}  // namespace
}  // namespace serin::kernels::test
