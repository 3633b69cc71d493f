// Every kernel of kernels/cuda compared with the reference: on the emulated device (tests/gpu/emulator), where the threads of a block run in another order in
// every launch, so that what depends on the order shows; and by tests/gpu/run on a real one, with the rows of NVIDIA's libraries.

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/cuda/space.h"
#include "kernels/device_weights.h"
#include "kernels/indexing.h"
#include "tests/gpu/device_under_test.h"
#include "tests/gpu/on_device.h"
#include "tests/kernels/harness.h"

namespace serin::kernels::test {
namespace {

constexpr DType kAll[] = {DType::kBool,     DType::kInt8,    DType::kInt16,  DType::kInt32,  DType::kInt64,
                          DType::kUInt8,    DType::kUInt16,  DType::kUInt32, DType::kUInt64, DType::kFloat16,
                          DType::kBFloat16, DType::kFloat32, DType::kFloat64};

TEST(DeviceKernels, DividesByMultiplication) {
  for (const uint32_t d : {1u, 2u, 3u, 5u, 7u, 10u, 64u, 641u, 65535u, 65536u, 1000003u, 0x7FFFFFFFu}) {
    const cuda::Divisor divisor(d);
    for (const uint32_t n : {0u, 1u, d - 1, d, d + 1, 2 * d - 1, 12345678u, 0x7FFFFFFEu, 0x7FFFFFFFu})
      EXPECT_EQ(divisor.divide(n), n / d) << n << " / " << d;
  }
}

TEST(DeviceKernels, UnaryOfEveryFunctionAndType) {
  for (int fn = 0; fn <= static_cast<int>(UnaryFn::kIsInf); ++fn) {
    const auto f = static_cast<UnaryFn>(fn);
    for (const DType dtype : kAll) {
      const bool accepted = f == UnaryFn::kNot ? dtype == DType::kBool
                            : dtype == DType::kBool
                                ? f == UnaryFn::kIdentity
                                : is_float(dtype) || f == UnaryFn::kIdentity || f == UnaryFn::kAbs || f == UnaryFn::kNeg ||
                                      f == UnaryFn::kSign || f == UnaryFn::kRelu || f == UnaryFn::kClip;
      if (!accepted || (f >= UnaryFn::kIsNaN && !is_float(dtype))) continue;
      const DType out = is_predicate(f) ? DType::kBool : dtype;
      const Tensor x = dtype == DType::kFloat32 ? special_values({7, 83}) : random_integers(dtype, {7, 83}, 3, 1, 5);
      // A real device joins products and sums into one instruction, and so may round the other way; within an exponential the difference grows.
      const double joined = dtype == DType::kFloat16 ? 1e-3 : dtype == DType::kBFloat16 ? 8e-3 : f == UnaryFn::kGeluTanh ? 1e-5 : 1e-6;
      const double relative = serin::test::emulated() ? 1e-6 : joined;
      expect_agrees({.op = Unary{f, 0.25f, 2.f}, .inputs = {x}, .outputs = {{out, {7, 83}}}}, {.relative = relative});
    }
  }
}

TEST(DeviceKernels, BinaryBroadcasts) {
  const std::pair<Shape, Shape> shapes[] = {{{4, 33}, {4, 33}},
                                            {{4, 33}, {33}},
                                            {{4, 1}, {1, 33}},
                                            {{}, {4, 33}},
                                            {{4, 33}, {}},
                                            {{2, 3, 5}, {3, 1}},
                                            {{2, 1, 3, 1}, {5, 1, 4}},
                                            {{0, 4}, {4}},
                                            {{4, 3, 64}, {4, 1, 64}},
                                            {{2, 5, 64}, {2, 5, 1}},
                                            {{3, 1, 32}, {7, 32}},
                                            {{5, 1}, {2, 5, 48}}};
  for (const auto& [a, b] : shapes) {
    Shape y;
    for (size_t i = 0; i < std::max(a.rank(), b.rank()); ++i) {
      const size_t from_a = i + a.rank() >= std::max(a.rank(), b.rank()) ? i + a.rank() - std::max(a.rank(), b.rank()) : SIZE_MAX;
      const size_t from_b = i + b.rank() >= std::max(a.rank(), b.rank()) ? i + b.rank() - std::max(a.rank(), b.rank()) : SIZE_MAX;
      const int64_t da = from_a == SIZE_MAX ? 1 : a[from_a], db = from_b == SIZE_MAX ? 1 : b[from_b];
      y.push_back(da == 1 ? db : da);
    }
    for (const BinaryFn fn : {BinaryFn::kAdd, BinaryFn::kDiv, BinaryFn::kMin, BinaryFn::kLess, BinaryFn::kPow})
      expect_agrees({.op = Binary{fn},
                     .inputs = {random_tensor(a, 1), random_tensor(b, 2)},
                     .outputs = {{is_compare(fn) ? DType::kBool : DType::kFloat32, y}}},
                    {.relative = 1e-6});
  }
}

TEST(DeviceKernels, BinaryOfEveryFunctionAndType) {
  for (int i = 0; i <= static_cast<int>(BinaryFn::kXor); ++i) {
    const auto fn = static_cast<BinaryFn>(i);
    for (const DType dtype : kAll) {
      const bool logical = is_logical(fn);
      if (dtype == DType::kBool ? !logical && fn != BinaryFn::kEqual : logical) continue;
      const DType out = is_compare(fn) ? DType::kBool : dtype;
      expect_agrees(
          {.op = Binary{fn}, .inputs = {random_integers(dtype, {3, 37}, 1), random_integers(dtype, {37}, 2)}, .outputs = {{out, {3, 37}}}},
          {.relative = 1e-3});
    }
  }
}

TEST(DeviceKernels, SelectsAndCastsAndCopies) {
  expect_agrees({.op = Select{},
                 .inputs = {random_integers(DType::kBool, {5, 1}, 1), random_tensor({5, 9}, 2), random_tensor({}, 3)},
                 .outputs = {{DType::kFloat32, {5, 9}}}});
  for (const DType from : kAll) {
    for (const DType to : kAll) expect_agrees({.op = Cast{}, .inputs = {random_integers(from, {3, 41}, 1)}, .outputs = {{to, {3, 41}}}});
  }
  expect_agrees({.op = StridedCopy{0, {1, 6, 24}}, .inputs = {random_tensor({5, 4, 6}, 1)}, .outputs = {{DType::kFloat32, {6, 4, 5}}}});
  expect_agrees({.op = StridedCopy{3, {0, 2}}, .inputs = {random_integers(DType::kInt8, {40}, 1)}, .outputs = {{DType::kInt8, {4, 17}}}});
}

TEST(DeviceKernels, SoftmaxOfShortLongAndStridedRows) {
  for (const bool log : {false, true}) {
    for (const Shape& shape : {Shape{7, 5}, Shape{3, 1024}, Shape{2, 2500}, Shape{1, 1}, Shape{9, 33}})
      expect_agrees({.op = Softmax{-1, log}, .inputs = {random_tensor(shape, 1, 3.f)}, .outputs = {{DType::kFloat32, shape}}},
                    {1e-5, 1e-6});
    expect_agrees({.op = Softmax{1, log}, .inputs = {random_tensor({3, 10, 4}, 1)}, .outputs = {{DType::kFloat32, {3, 10, 4}}}},
                  {1e-5, 1e-6});
  }
  expect_agrees({.op = Softmax{0}, .inputs = {special_values({60})}, .outputs = {{DType::kFloat32, {60}}}});
  expect_agrees({.op = Softmax{-1}, .inputs = {random_integers(DType::kFloat16, {4, 70}, 1)}, .outputs = {{DType::kFloat16, {4, 70}}}},
                {1e-3, 1e-4});
  expect_agrees({.op = Softmax{-1}, .inputs = {random_integers(DType::kFloat64, {4, 70}, 1)}, .outputs = {{DType::kFloat64, {4, 70}}}},
                {1e-12});
}

TEST(DeviceKernels, NormsOfShortAndLongRows) {
  for (const int64_t n : {1, 31, 768, 1500}) {
    const Tensor x = random_tensor({5, n}, 1, 2.f), scale = random_tensor({n}, 2), bias = random_tensor({n}, 3);
    const Output y{DType::kFloat32, {5, n}};
    expect_agrees({.op = LayerNorm{-1, 1e-5f, true}, .inputs = {x, scale, bias}, .outputs = {y}}, {1e-5, 1e-5});
    expect_agrees({.op = LayerNorm{1, 1e-3f, false}, .inputs = {x, scale}, .outputs = {y}}, {1e-5, 1e-5});
    Generic rms{"RMSNormalization", {}};
    rms.attributes.set("epsilon", 1e-6);
    expect_agrees({.op = rms, .inputs = {x, scale}, .outputs = {y}}, {1e-5, 1e-5});
  }
}

TEST(DeviceKernels, RefuseAnAxisThatIsNotThere) {
  const Output y{DType::kFloat32, {5, 8}};
  const Tensor x = random_tensor({5, 8}, 1), scale = random_tensor({8}, 2);
  Generic rms{"RMSNormalization", {}};
  rms.attributes.set("axis", int64_t{2});
  const Case cases[] = {{.op = Softmax{2, false}, .inputs = {x}, .outputs = {y}},
                        {.op = Softmax{-1, false}, .inputs = {random_tensor({}, 1)}, .outputs = {{DType::kFloat32, {}}}},
                        {.op = LayerNorm{-3, 1e-5f, false}, .inputs = {x, scale}, .outputs = {y}},
                        {.op = rms, .inputs = {x, scale}, .outputs = {y}}};
  for (const Case& c : cases) {
    PackedWeights weights;
    PrepareContext context{&weights};
    const serin::kernels::Prepared prepared = device_backend().prepare(c.describe(), context);
    EXPECT_FALSE(prepared.kernel) << c.str();
    const auto names_axis = [](const auto& refusal) { return refusal.reason.find("axis is out of range") != std::string::npos; };
    EXPECT_TRUE(std::ranges::any_of(prepared.refusals, names_axis)) << c.str();
  }
}

TEST(DeviceKernels, ReducesOverAnyAxes) {
  const std::vector<std::vector<int64_t>> axes = {{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}, {0, 1, 2}, {}};
  for (const auto& each : axes) {
    for (int fn = 0; fn <= static_cast<int>(ReduceFn::kSumSquare); ++fn) {
      Shape y{5, 37, 6};
      for (const int64_t axis : each) y[static_cast<size_t>(axis)] = 1;
      const Reduce op{static_cast<ReduceFn>(fn), each};
      expect_agrees({.op = op, .inputs = {random_tensor({5, 37, 6}, 4)}, .outputs = {{DType::kFloat32, y}}}, {1e-4, 1e-5});
      for (const DType dtype : {DType::kInt32, DType::kInt8, DType::kUInt64, DType::kFloat64, DType::kBFloat16})
        expect_agrees({.op = op, .inputs = {random_integers(dtype, {5, 37, 6}, 4, 1, 2)}, .outputs = {{dtype, y}}}, {1e-2});
    }
  }
  for (int fn = 0; fn <= static_cast<int>(ReduceFn::kSumSquare); ++fn)
    expect_agrees({.op = Reduce{static_cast<ReduceFn>(fn), {1}},
                   .inputs = {Tensor(DType::kFloat32, {3, 0})},
                   .outputs = {{DType::kFloat32, {3, 1}}}});
}

TEST(DeviceKernels, FindsTheLargestAndSumsAlongAxes) {
  for (const int64_t axis : {0, 1, 2}) {
    for (const bool min : {false, true}) {
      for (const bool last : {false, true}) {
        Shape y{4, 70, 3};
        y[static_cast<size_t>(axis)] = 1;
        expect_agrees(
            {.op = ArgMax{axis, min, last}, .inputs = {random_integers(DType::kInt32, {4, 70, 3}, 1)}, .outputs = {{DType::kInt64, y}}});
        expect_agrees({.op = ArgMax{axis, min, last}, .inputs = {special_values({4, 70, 3})}, .outputs = {{DType::kInt64, y}}});
        expect_agrees({.op = CumSum{axis, min, last}, .inputs = {random_tensor({4, 70, 3}, 1)}, .outputs = {{DType::kFloat32, {4, 70, 3}}}},
                      {1e-4, 1e-5});
      }
    }
  }
}

TEST(DeviceKernels, MovesElements) {
  expect_agrees({.op = Concat{1},
                 .inputs = {random_tensor({3, 2, 5}, 1), random_tensor({3, 0, 5}, 2), random_tensor({3, 7, 5}, 3)},
                 .outputs = {{DType::kFloat32, {3, 9, 5}}}});
  for (const auto mode : {Pad::Mode::kConstant, Pad::Mode::kReflect, Pad::Mode::kEdge, Pad::Mode::kWrap}) {
    const Pad op{{2, -1, 7}, {0, 3, 1}, mode};
    expect_agrees({.op = op, .inputs = {random_tensor({3, 4, 5}, 1)}, .outputs = {{DType::kFloat32, {5, 6, 13}}}});
  }
  expect_agrees({.op = Pad{{1}, {2}},
                 .inputs = {random_integers(DType::kInt16, {3}, 1), random_integers(DType::kInt16, {}, 2)},
                 .outputs = {{DType::kInt16, {6}}}});
  for (const DType index : {DType::kInt32, DType::kInt64}) {
    expect_agrees({.op = Gather{1},
                   .inputs = {random_tensor({2, 9, 3}, 1), random_integers(index, {4, 2}, 2, -9, 8)},
                   .outputs = {{DType::kFloat32, {2, 4, 2, 3}}}});
    expect_agrees({.op = Gather{0},
                   .inputs = {random_integers(DType::kUInt8, {9}, 1), random_integers(index, {}, 2, -9, 8)},
                   .outputs = {{DType::kUInt8, {}}}});
  }
}

TEST(DeviceKernels, SaysWhichIndexIsOutOfRange) {
  const Case c{.op = Gather{0},
               .inputs = {random_tensor({9, 3}, 1), Tensor({2}, std::vector<int64_t>{3, 12})},
               .outputs = {{DType::kFloat32, {2, 3}}}};
  Device& device = *device_backend().device();
  DeviceWeights weights(device);
  PrepareContext context{&weights};
  const Prepared prepared = device_backend().prepare(c.describe(), context);
  ASSERT_TRUE(prepared.kernel);
  DeviceFault fault;
  run_on_device(device, *prepared.kernel, c, &fault);
  EXPECT_EQ(fault.step, 7);
  EXPECT_EQ(prepared.kernel->explain(fault.detail), "index 12 is out of range for axis 0 of size 9");
}

TEST(DeviceKernels, PoolsWindows) {
  for (const bool average : {false, true}) {
    for (const bool count : {false, true}) {
      expect_agrees({.op = Pool{average, count, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}},
                     .inputs = {random_tensor({2, 3, 9, 8}, 1)},
                     .outputs = {{DType::kFloat32, {2, 3, 5, 4}}}},
                    {1e-5, 1e-6});
      expect_agrees({.op = Pool{average, count, {2}, {1}, {3}, {0, 2}},
                     .inputs = {random_integers(DType::kInt8, {2, 3, 9}, 1)},
                     .outputs = {{DType::kInt8, {2, 3, 8}}}});
      expect_agrees({.op = Pool{average, count, {2, 1, 2}, {1, 2, 1}, {1, 1, 1}, {0, 0, 0, 0, 0, 1}},
                     .inputs = {random_tensor({1, 2, 4, 5, 3}, 1)},
                     .outputs = {{DType::kFloat32, {1, 2, 3, 3, 3}}}},
                    {1e-5, 1e-6});
    }
  }
}

TEST(DeviceKernels, MultipliesMatrices) {
  struct Sizes {
    Shape a, b, y;
    bool transpose_a, transpose_b;
  };
  const Sizes sizes[] = {{{3, 5}, {5, 7}, {3, 7}, false, false},
                         {{70, 33}, {33, 130}, {70, 130}, false, false},
                         {{33, 70}, {130, 33}, {70, 130}, true, true},
                         {{2, 1, 9, 17}, {3, 17, 4}, {2, 3, 9, 4}, false, false},
                         {{5, 0}, {0, 6}, {5, 6}, false, false}};
  for (const Sizes& s : sizes) {
    const MatMul plain{s.transpose_a, s.transpose_b, 1.f, false, {}};
    expect_agrees({.op = plain, .inputs = {random_tensor(s.a, 1), random_tensor(s.b, 2)}, .outputs = {{DType::kFloat32, s.y}}},
                  {1e-4, 1e-5});
    expect_agrees({.op = plain,
                   .inputs = {random_integers(DType::kInt8, s.a, 1), random_integers(DType::kInt8, s.b, 2)},
                   .outputs = {{DType::kInt8, s.y}}});
    const MatMul full{s.transpose_a, s.transpose_b, 0.5f, true, {UnaryFn::kGelu, 0.f, 0.f, true}};
    expect_agrees({.op = full,
                   .inputs = {random_tensor(s.a, 1), random_tensor(s.b, 2), random_tensor({s.y.back()}, 3), random_tensor(s.y, 4)},
                   .outputs = {{DType::kFloat32, s.y}}},
                  {1e-4, 1e-5});
  }
}

Case attention(int64_t batch, int64_t q_heads, int64_t kv_heads, int64_t q_len, int64_t kv_len, int64_t head, int64_t v_head) {
  return {.op = Generic{"Attention", {}},
          .inputs = {random_tensor({batch, q_heads, q_len, head}, 1), random_tensor({batch, kv_heads, kv_len, head}, 2),
                     random_tensor({batch, kv_heads, kv_len, v_head}, 3)},
          .outputs = {{DType::kFloat32, {batch, q_heads, q_len, v_head}}}};
}

TEST(DeviceKernels, Attends) {
  constexpr Tolerance kTolerance{1e-4, 1e-5};
  expect_agrees(attention(2, 4, 2, 33, 150, 40, 24), kTolerance);
  expect_agrees(attention(1, 1, 1, 7, 1, 1, 1), kTolerance);
  for (const Shape& shape : {Shape{33, 70}, Shape{2, 1, 1, 70}, Shape{2, 4, 33, 70}, Shape{4, 1, 65}}) {
    Case added = attention(2, 4, 2, 33, 70, 16, 16);
    set(added, "softcap", 2.0);
    added.inputs.push_back(random_tensor(shape, 4, 3.f));
    expect_agrees(added, kTolerance);
    Case chosen = attention(2, 4, 2, 33, 70, 16, 16);
    chosen.inputs.push_back(random_integers(DType::kBool, shape, 5));
    set(chosen, "masked_to_zero", int64_t{1});
    set(chosen, "is_causal", int64_t{1});
    expect_agrees(chosen, kTolerance);
  }
  Case past = attention(2, 4, 2, 3, 3, 16, 8);
  past.inputs.push_back(Tensor(DType::kUndefined, {}));
  past.inputs.push_back(random_tensor({2, 2, 80, 16}, 6));
  past.inputs.push_back(random_tensor({2, 2, 80, 8}, 7));
  set(past, "is_causal", int64_t{1});
  set(past, "scale", 1.5);
  expect_agrees(past, kTolerance);
}

/// Few queries and many: each width of heads has a kernel for either.
TEST(DeviceKernels, AttendsWithHeadsOfEverySize) {
  constexpr Tolerance kTolerance{1e-4, 1e-5};
  const int64_t heads[][2] = {{64, 64}, {64, 20}, {33, 64}, {72, 128}, {128, 96}, {256, 8}, {130, 256}, {3, 5}};
  for (const auto& [head, v_head] : heads) {
    expect_agrees(attention(1, 2, 1, 19, 70, head, v_head), kTolerance);
    Case many = attention(1, 8, 4, 70, 140, head, v_head);
    set(many, "is_causal", int64_t{1});
    many.inputs.push_back(random_tensor({8, 70, 140}, 4, 3.f));
    expect_agrees(many, kTolerance);
  }
}

TEST(DeviceKernels, ConvolvesDirectly) {
  struct Sizes {
    Shape x, weight, y;
    std::vector<int64_t> strides, dilations, pads;
    int64_t group;
  };
  const Sizes sizes[] = {{{2, 3, 9, 8}, {5, 3, 3, 3}, {2, 5, 5, 4}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 1},
                         {{1, 4, 7, 7}, {6, 2, 3, 1}, {1, 6, 3, 7}, {1, 1}, {2, 1}, {0, 0, 0, 0}, 2},
                         {{1, 4, 12}, {4, 1, 5}, {1, 4, 12}, {1}, {1}, {2, 2}, 4},
                         {{1, 2, 4, 5, 3}, {3, 2, 2, 2, 2}, {1, 3, 3, 4, 2}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0, 0, 0, 0}, 1}};
  for (const Sizes& s : sizes) {
    const Conv op{s.strides, s.dilations, s.pads, s.group, true, {UnaryFn::kSilu, 0.f, 0.f, true}};
    expect_agrees({.op = op,
                   .inputs = {random_tensor(s.x, 1), random_tensor(s.weight, 2), random_tensor({s.weight[0]}, 3), random_tensor(s.y, 4)},
                   .outputs = {{DType::kFloat32, s.y}}},
                  {1e-4, 1e-5});
  }
  expect_agrees({.op = BatchNorm{1e-3f},
                 .inputs = {random_tensor({2, 5, 3}, 1), random_tensor({5}, 2), random_tensor({5}, 3), random_tensor({5}, 4),
                            Tensor({5}, std::vector<float>{1, 2, 0.5, 3, 0})},
                 .outputs = {{DType::kFloat32, {2, 5, 3}}}},
                {1e-4, 1e-5});
}

}  // namespace
}  // namespace serin::kernels::test
