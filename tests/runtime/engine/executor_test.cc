// What a run computes, against closed forms; and what it does not do: write elsewhere, differ from run to run, let rows see each other.

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "runtime/engine/plan.h"
#include "tests/runtime/engine/support.h"

namespace serin::engine {
namespace {

using test::run;
using test::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor floats(const Shape& shape, const std::vector<float>& values) { return Tensor(shape, values); }

// A count that no buffer holds: the boxes there are bound what is kept.
TEST(Executor, SuppressionThatMayKeepMoreThanThereIs) {
  const std::string text = "b: f32[n,3,4]\ns: f32[n,2,3]\ny = NonMaxSuppression(b, s, i64{9223372036854775807}, f32{0.5})\nreturn y\n";
  for (const kernels::Backend* backend : {&test::reference(), &test::best()}) {
    const auto model = test::model_of(text, *backend);
    const auto executor = model->executor({{"n", 2}});
    ASSERT_TRUE(executor) << executor.error().message;
    EXPECT_EQ((*executor)->outputs()[0].shape, (Shape{12, 3}));
    const std::vector<float> apart{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5};
    const auto kept = test::run(**executor, {test::Tensor({2, 3, 4}, apart), test::random_tensor({2, 2, 3}, 1)});
    EXPECT_EQ(kept[0].view().shape, (Shape{12, 3}));
  }
}

TEST(Executor, ComputesASmallNetwork) {
  const auto outputs = run(R"(
    x: f32[n,2]
    h = Gemm(x, w:f32[2,2]{1.0,2.0,3.0,4.0}, b:f32[2]{10.0,20.0}, beta=2.0)
    r = Relu(h)
    return r
  )",
                           {floats({2, 2}, {1, 1, -100, 0})});
  EXPECT_THAT(outputs.at(0).values<float>(), ElementsAre(24, 46, 0, 0));
}

TEST(Executor, TransposesSlicesExpandsAndTiles) {
  const auto outputs = run(R"(
    x: f32[2,3]
    t = Transpose(x, perm=[1,0])
    s = Slice(x, axes=[1], starts=[-1], ends=[-4], steps=[-2])
    row = Slice(x, axes=[0], starts=[1], ends=[2])
    e = Expand(row, k:i64[2]{2,3})
    l = Tile(x, r:i64[2]{1,2})
    return t, s, e, l
  )",
                           {floats({2, 3}, {1, 2, 3, 4, 5, 6})});
  EXPECT_THAT(outputs.at(0).values<float>(), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(outputs.at(1).values<float>(), ElementsAre(3, 1, 6, 4));
  EXPECT_THAT(outputs.at(2).values<float>(), ElementsAre(4, 5, 6, 4, 5, 6));
  EXPECT_THAT(outputs.at(3).values<float>(), ElementsAre(1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6));
}

TEST(Executor, RearrangesWhatLiesInOrderAlready) {
  const auto outputs = run(R"(
    x: f32[1,4,h,w]
    d = DepthToSpace(x, blocksize=2, mode=CRD)
    y = Neg(d)
    s = SpaceToDepth(y, blocksize=2)
    return d, s
  )",
                           {floats({1, 4, 1, 1}, {1, 2, 3, 4})});
  EXPECT_THAT(outputs.at(0).values<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(outputs.at(1).values<float>(), ElementsAre(-1, -2, -3, -4));
}

TEST(Executor, MultipliesVectorsAndBatches) {
  const auto outputs = run(R"(
    a: f32[3]
    b: f32[2,3,2]
    vm = MatMul(a, b)
    bt = Transpose(b, perm=[0,2,1])
    mv = MatMul(bt, a)
    vv = MatMul(a, a)
    mm = MatMul(bt, w:f32[3,1]{1.0,1.0,1.0})
    return vm, mv, vv, mm
  )",
                           {floats({3}, {1, 2, 3}), floats({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})});
  EXPECT_THAT(outputs.at(0).values<float>(), ElementsAre(22, 28, 58, 64));
  EXPECT_THAT(outputs.at(1).values<float>(), ElementsAre(22, 28, 58, 64));
  EXPECT_THAT(outputs.at(2).values<float>(), ElementsAre(14));
  EXPECT_THAT(outputs.at(3).values<float>(), ElementsAre(9, 12, 27, 30));
  EXPECT_EQ(outputs.at(3).view().shape, (Shape{2, 2, 1}));
}

TEST(Executor, CombinesAnyNumberOfOperands) {
  const auto outputs = run(R"(
    x: f32[3]
    y: f32[2,1]
    most = Max(x, y, c:f32[]{2.0})
    mean = Mean(x, x, y)
    sum = Sum(x)
    return most, mean, sum
  )",
                           {floats({3}, {1, 2, 9}), floats({2, 1}, {0, 3})});
  EXPECT_THAT(outputs.at(0).values<float>(), ElementsAre(2, 2, 9, 3, 3, 9));
  EXPECT_THAT(outputs.at(1).values<float>(), ElementsAre(2.f / 3, 4.f / 3, 6, 5.f / 3, 7.f / 3, 7));
  EXPECT_THAT(outputs.at(2).values<float>(), ElementsAre(1, 2, 9));
}

TEST(Executor, ClipsIntegersExactly) {
  const int64_t big = (int64_t{1} << 53) + 1;  // not a float, not even a double
  const auto outputs = run(R"(
    x: i64[3]
    high: i64[]
    a = Clip(x, _, high)
    return a
  )",
                           {Tensor(Shape{3}, std::vector<int64_t>{-5, big, big + 5}), Tensor(Shape{}, std::vector<int64_t>{big + 1})});
  EXPECT_THAT(outputs.at(0).values<int64_t>(), ElementsAre(-5, big, big + 1));
}

TEST(Executor, ReducesOverAllAxesWhereNoneIsGiven) {
  const auto outputs = run(R"(
    x: f32[2,2]
    all = ReduceSum(x)
    none = ReduceSum(x, noop_with_empty_axes=1)
    rows = ReduceMax(x, axes=[-1], keepdims=0)
    return all, none, rows
  )",
                           {floats({2, 2}, {1, 2, 3, 4})});
  EXPECT_THAT(outputs.at(0).values<float>(), ElementsAre(10));
  EXPECT_EQ(outputs.at(0).view().shape, (Shape{1, 1}));
  EXPECT_THAT(outputs.at(1).values<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(outputs.at(2).values<float>(), ElementsAre(2, 4));
}

TEST(Executor, PadsOnlyTheAxesItIsTold) {
  const auto outputs = run(R"(
    x: f32[1,2]
    y = Pad(x, pads=[1,0], axes=[1], value=7.0)
    z = Pad(x, pads=[0,1,0,1], mode=reflect)
    return y, z
  )",
                           {floats({1, 2}, {1, 2})});
  EXPECT_THAT(outputs.at(0).values<float>(), ElementsAre(7, 1, 2));
  EXPECT_THAT(outputs.at(1).values<float>(), ElementsAre(2, 1, 2, 1));
}

TEST(Executor, PoolsWithCeilModeSeeTheLastCells) {
  const auto outputs = run(R"(
    x: f32[1,1,1,5]
    m = MaxPool(x, kernel_shape=[1,2], strides=[1,2], ceil_mode=1)
    a = AveragePool(x, kernel_shape=[1,2], strides=[1,2], ceil_mode=1, count_include_pad=1)
    return m, a
  )",
                           {floats({1, 1, 1, 5}, {1, 2, 3, 4, 5})});
  EXPECT_THAT(outputs.at(0).values<float>(), ElementsAre(2, 4, 5));
  EXPECT_THAT(outputs.at(1).values<float>(), ElementsAre(1.5, 3.5, 5));
}

TEST(Executor, EmptyTensorsAreNoTrouble) {
  const auto outputs = run(R"(
    x: f32[2,3]
    none = Slice(x, axes=[1], starts=[1], ends=[1])
    both = Concat(none, x, axis=1)
    sum = ReduceSum(none, axes=[1], keepdims=0)
    return none, both, sum
  )",
                           {floats({2, 3}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(outputs.at(0).view().shape, (Shape{2, 0}));
  EXPECT_THAT(outputs.at(1).values<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(outputs.at(2).values<float>(), ElementsAre(0, 0));
}

// ---- sizes that the data decides ----

constexpr std::string_view kPositions = R"(
    x: f32[5]
    p = NonZero(x)
    flat = Squeeze(p, axes=[0])
    twice = Add(flat, flat)
    picked = Gather(x, flat, axis=0)
    three = Concat(picked, c:f32[1]{9.0}, picked, axis=0)
    t = Transpose(p, perm=[1,0])
    return p, twice, three, t
  )";

TEST(Executor, BoundedResultsGetTheirTrueShape) {
  const auto outputs = run(kPositions, {floats({5}, {0, 4, 0, 6, 0})});
  EXPECT_EQ(outputs.at(0).view().shape, (Shape{1, 2}));
  EXPECT_THAT(outputs.at(0).values<int64_t>(), ElementsAre(1, 3));
  EXPECT_THAT(outputs.at(1).values<int64_t>(), ElementsAre(2, 6));
  EXPECT_THAT(outputs.at(2).values<float>(), ElementsAre(4, 6, 9, 4, 6));
  EXPECT_EQ(outputs.at(3).view().shape, (Shape{2, 1}));
}

TEST(Executor, BoundedResultsMayBeEmptyOrFullAndChangeFromRunToRun) {
  const auto model = test::model_of(kPositions);
  auto executor = *model->executor({});
  EXPECT_EQ(run(*executor, {floats({5}, {1, 2, 3, 4, 5})}).at(2).view().shape, (Shape{11}));
  EXPECT_EQ(run(*executor, {floats({5}, {0, 0, 0, 0, 0})}).at(2).view().shape, (Shape{1}));
  EXPECT_THAT(run(*executor, {floats({5}, {0, 0, 0, 0, 8})}).at(2).values<float>(), ElementsAre(8, 9, 8));
}

TEST(Executor, RearrangingAnInnerBoundedDimensionIsNotPlanned) {
  const auto model = test::model_of("x: f32[4,4]\np = NonZero(x)\nt = Transpose(p, perm=[1,0])\nreturn t\n");
  EXPECT_FALSE(model->planned());
  EXPECT_THAT(model->why_interpreted(),
              HasSubstr("'t' (Transpose): rearranges 'p', whose inner dimension has a size that depends on the data"));
  EXPECT_THAT(model->executor({}).error().message, HasSubstr("the model has no plan of its own: 1 node cannot be run: 't' (Transpose)"));
}

/// Of six or thirty elements k are kept, and meet six: the graph allows for k = 1 and k = 6. The chain beside them is fused, after which the program is verified.
TEST(Executor, ASizeThatTheDataDecidesMustFitWhatItMeets) {
  const auto picked = [](size_t most) {
    return "x: f32[" + std::to_string(most) +
           "]\nw: f32[6]\nm: f32[2,6]\nlarge: f32[256,256]\np = NonZero(x)\nflat = Squeeze(p, axes=[0])\ng = Gather(x, flat)\n"
           "twice = Mul(large, 2.0)\nmore = Add(twice, 1.0)\nbeside = Tanh(more)\n";
  };
  const struct {
    std::string step, why_not;
    bool takes_one;
  } cases[] = {
      {"y = Add(g, w)\n", "node 'y' (Add): [k] does not broadcast to [6]", true},
      {"c = Greater(w, 0.0)\ny = Where(c, g, w)\n", "node 'y' (Where): [k] does not broadcast to [6]", true},
      {"a = Add(g, w)\nb = Mul(a, 2.0)\ny = Tanh(b)\n", "[k] does not broadcast to [6]", true},
      {"r = Unsqueeze(g, axes=[0])\ny = Concat(m, r, axis=0)\n", "node 'y' (Concat): [1,k] cannot be joined to [3,6]", false},
      {"r = Unsqueeze(g, axes=[0])\nt = Transpose(m, perm=[1,0])\ny = MatMul(r, t)\n", "cannot multiply [1,k] by ", false},
  };
  const Tensor w({6}, std::vector<float>{1, 2, 3, 4, 5, 6}), m = test::random_tensor({2, 6}, 1), large = test::random_tensor({256, 256}, 2);
  for (const auto& [backend, most] :
       {std::pair(&test::reference(), 6), {&test::best(), 6}, {&test::reference(), 30}, {&test::best(), 30}}) {
    for (const auto& [step, why_not, takes_one] : cases) {
      const auto model = test::model_of(picked(most) + step + "return y, beside\n", *backend);
      ASSERT_TRUE(model->planned()) << step << model->why_interpreted();
      auto made = model->executor({});
      ASSERT_TRUE(made) << step << most << made.error().message;
      auto executor = *std::move(made);
      for (const size_t kept : {6, 4, 0, 1, most, 6}) {
        Tensor x({most}, std::vector<float>(static_cast<size_t>(most), 0.f));
        std::fill_n(x.view().as<float>(), kept, 2.f);
        std::vector<Tensor> outputs = test::make_outputs(*executor);
        std::vector<TensorView> out = test::views(outputs);
        const Status ran = executor->run(test::views({x, w, m, large}), out);
        ASSERT_EQ(static_cast<bool>(ran), kept == 6 || (kept == 1 && takes_one)) << step << kept;
        if (ran) {
          const bool sum = step == "y = Add(g, w)\n";
          EXPECT_TRUE(!sum || outputs[0].values<float>() == (std::vector<float>{3, 4, 5, 6, 7, 8})) << kept;
          continue;
        }
        const std::string wanted = std::string(why_not).replace(why_not.find('k', why_not.find('[')), 1, std::to_string(kept));
        EXPECT_THAT(ran.error().message, HasSubstr(wanted));
        EXPECT_EQ(ran.error().code, Code::kInvalidArgument);
      }
    }
  }
}

// ---- If ----

constexpr std::string_view kChoice = R"(
    flag: bool[]
    x: f32[2]
    z = Neg(x)
    y = If(flag, x, z)
      then:
        x: f32[2]
        z: f32[2]
        a = Mul(x, 10.0)
        b = Softmax(a, axis=0)
        c = Add(b, z)
        return c
      else:
        x: f32[2]
        z: f32[2]
        return x
    out = Add(y, 0.0)
    return out
  )";

TEST(Executor, IfRunsTheBodyThatTheConditionChooses) {
  const auto model = test::model_of(kChoice);
  auto executor = *model->executor({});
  const auto choose = [&](uint8_t flag) {
    Tensor condition(DType::kBool, Shape{});
    *condition.view().as<uint8_t>() = flag;
    return run(*executor, {std::move(condition), floats({2}, {0, 0.5f})}).at(0).values<float>();
  };
  const float e = std::exp(5.f);
  EXPECT_THAT(choose(1), ElementsAre(::testing::FloatNear(1 / (1 + e), 1e-6f), ::testing::FloatNear(e / (1 + e) - 0.5f, 1e-6f)));
  EXPECT_THAT(choose(0), ElementsAre(0, 0.5f));
}

// ---- times ----

TEST(Executor, AddsUpWhatEachStepTook) {
  const auto model = test::model_of("x: f32[64,64]\ny = Exp(x)\nz = MatMul(y, y)\nreturn z\n");
  auto executor = *model->executor({});
  const std::vector<Tensor> inputs = {test::random_tensor({64, 64}, 1)};
  std::vector<Tensor> outputs = test::make_outputs(*executor);
  std::vector<TensorView> out = test::views(outputs);
  std::vector<int64_t> step_ns(executor->plan().steps.size(), 0);
  ASSERT_EQ(step_ns.size(), 2u);
  ASSERT_TRUE(executor->run(test::views(inputs), out, step_ns));
  const std::vector<int64_t> once = step_ns;
  ASSERT_TRUE(executor->run(test::views(inputs), out, step_ns));
  for (size_t i = 0; i < step_ns.size(); ++i) {
    EXPECT_GT(once[i], 0);
    EXPECT_GT(step_ns[i], once[i]);
  }
}

TEST(Executor, WantsATimeForEachStep) {
  const auto model = test::model_of("x: f32[2]\ny = Exp(x)\nreturn y\n");
  auto executor = *model->executor({});
  const std::vector<Tensor> inputs = {test::random_tensor({2}, 1)};
  std::vector<Tensor> outputs = test::make_outputs(*executor);
  std::vector<TensorView> out = test::views(outputs);
  std::vector<int64_t> step_ns(3, 0);
  EXPECT_EQ(executor->run(test::views(inputs), out, step_ns).error().message, "the plan has 1 steps, times are wanted of 3");
}

// ---- faults ----

TEST(Executor, AFaultNamesNodeAndOperator) {
  const auto model = test::model_of("x: f32[3,2]\ni: i64[1]\npick = Gather(x, i, axis=0)\nreturn pick\n");
  auto executor = *model->executor({});
  const std::vector<Tensor> inputs = {test::random_tensor({3, 2}, 1), Tensor(Shape{1}, std::vector<int64_t>{12})};
  std::vector<Tensor> outputs = test::make_outputs(*executor);
  std::vector<TensorView> out = test::views(outputs);
  const Status status = executor->run(test::views(inputs), out);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  EXPECT_EQ(status.error().message, "node 'pick' (Gather): index 12 is out of range for axis 0 of size 3");
}

TEST(Executor, AFaultInABodyNamesBothNodes) {
  const auto model = test::model_of(R"(
    flag: bool[]
    x: f32[3]
    i: i64[1]
    choice = If(flag, x, i)
      then:
        x: f32[3]
        i: i64[1]
        pick = Gather(x, i, axis=0)
        return pick
      else:
        x: f32[3]
        i: i64[1]
        return k:f32[1]{0.0}
    return choice
  )");
  auto executor = *model->executor({});
  std::vector<Tensor> inputs = {Tensor(DType::kBool, Shape{}), test::random_tensor({3}, 1)};
  *inputs[0].view().as<uint8_t>() = 1;
  inputs.emplace_back(Shape{1}, std::vector<int64_t>{-4});
  std::vector<Tensor> outputs = test::make_outputs(*executor);
  std::vector<TensorView> out = test::views(outputs);
  EXPECT_EQ(executor->run(test::views(inputs), out).error().message,
            "node 'choice' (If): node 'pick' (Gather): index -4 is out of range for axis 0 of size 3");
}

TEST(Executor, RefusesTensorsItWasNotPlannedFor) {
  const auto model = test::model_of("x: f32[n,2]\ny = Neg(x)\nreturn y\n");
  auto executor = *model->executor({{"n", 3}});
  std::vector<Tensor> outputs = test::make_outputs(*executor);
  std::vector<TensorView> out = test::views(outputs);
  const auto message = [&](const Tensor& input) { return executor->run(std::vector{input.view()}, out).error().message; };
  EXPECT_EQ(message(test::random_tensor({4, 2}, 1)), "input 'x' is planned as f32[3,2], got f32[4,2]");
  EXPECT_EQ(message(Tensor(DType::kInt32, Shape{3, 2})), "input 'x' is planned as f32[3,2], got i32[3,2]");
  EXPECT_EQ(executor->run({}, out).error().message, "the model has 1 inputs, got 0");
}

// ---- the same bits ----

constexpr std::string_view kNetwork = R"(
    x: f32[batch,3,9,9]
    c = Conv(x, w[8,3,3,3], b[8], pads=[1,1,1,1])
    r = Relu(c)
    d = Conv(r, dw[8,1,3,3], group=8, strides=[2,2])
    g = GlobalAveragePool(d)
    f = Flatten(g)
    h = Gemm(f, w2[8,33], b2[33])
    t = Gelu(h)
    m = MatMul(t, w3[33,10])
    y = Softmax(m, axis=-1)
    return y
  )";

TEST(Executor, GivesTheSameBitsEveryTime) {
  const auto model = test::model_of(kNetwork, test::best());
  auto first = *model->executor({{"batch", 5}}), second = *model->executor({{"batch", 5}});
  const std::vector<Tensor> inputs = {test::random_tensor({5, 3, 9, 9}, 1)};
  const std::vector<float> expected = run(*first, inputs).at(0).values<float>();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(run(*first, inputs).at(0).values<float>(), expected);
    EXPECT_EQ(run(*second, inputs).at(0).values<float>(), expected);
  }
}

TEST(Executor, ARowHasTheSameBitsWhoeverSharesTheBatch) {
  const auto model = test::model_of(kNetwork, test::best());
  auto executor = *model->executor({{"batch", 5}});
  const size_t row_bytes = 3 * 9 * 9 * sizeof(float);
  const Tensor row = test::random_tensor({1, 3, 9, 9}, 1);
  std::vector<float> expected;
  for (size_t position = 0; position < 5; ++position) {
    for (uint32_t others = 2; others < 5; ++others) {
      std::vector<Tensor> inputs = {test::random_tensor({5, 3, 9, 9}, others)};
      std::memcpy(inputs[0].view().as<std::byte>() + position * row_bytes, row.view().data, row_bytes);
      const std::vector<float> all = run(*executor, inputs).at(0).values<float>();
      const std::vector<float> answer(all.begin() + static_cast<std::ptrdiff_t>(position * 10),
                                      all.begin() + static_cast<std::ptrdiff_t>(position * 10 + 10));
      if (expected.empty()) expected = answer;
      EXPECT_EQ(answer, expected) << "at row " << position;
    }
  }
}

}  // namespace
}  // namespace serin::engine
