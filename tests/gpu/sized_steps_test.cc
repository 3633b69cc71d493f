// Models in which a step of the device decides how large its result is: the host waits for that number, and the steps behind work on what there is, in every
// run anew.

#include <cuda_runtime.h>
#include <gmock/gmock.h>

#include "runtime/engine/describe.h"
#include "runtime/engine/plan.h"
#include "tests/gpu/device_under_test.h"
#include "tests/runtime/engine/support.h"

namespace serin::engine {
namespace {

using test::random_tensor;
using test::Tensor;
using testing::HasSubstr;
using testing::Not;

/// What YOLO's exporters put behind the head: suppression, and the boxes and scores that it kept.
constexpr const char* kDetector = R"(
  x: f32[batch,40,4]
  s: f32[batch,3,40]
  b = Relu(x)
  p = Sigmoid(s)
  kept = NonMaxSuppression(b, p, i64{9}, f32{0.4}, f32{0.5})
  image_and_box = Gather(kept, i64{0,2}, axis=1)
  box = GatherND(b, image_and_box)
  score = GatherND(p, kept)
  column = Unsqueeze(score, axes=[1])
  class = Slice(kept, axes=[1], starts=[1], ends=[2])
  label = Cast(class, to=f32)
  rows = Concat(box, column, label, axis=1)
  return rows, kept
)";

class SizedSteps : public testing::Test {
 protected:
  static std::shared_ptr<Model> on_device(std::string_view text) {
    static const auto backend = serin::test::open_device();
    return test::model_of(text, test::best(), {.device = backend.get()});
  }
  /// Each of these inputs in turn, twice over: what one run decided must not reach the next.
  static void expect_same(std::string_view text, const std::vector<std::vector<Tensor>>& inputs, const graph::Bindings& bindings = {}) {
    const auto cpu = test::model_of(text), device = on_device(text);
    ASSERT_TRUE(cpu && device);
    auto expected = cpu->executor(bindings), actual = device->executor(bindings);
    ASSERT_TRUE(expected && actual) << (actual ? "" : actual.error().message);
    for (size_t run = 0; run < 2 * inputs.size(); ++run) {
      const auto& given = inputs[run % inputs.size()];
      const std::vector<Tensor> wanted = test::run(**expected, given), got = test::run(**actual, given);
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t i = 0; i < got.size(); ++i) test::expect_near(got[i].view(), wanted[i].view(), "run " + std::to_string(run));
    }
  }
  static std::string described(std::string_view text, const graph::Bindings& bindings = {}) {
    const auto model = on_device(text);
    auto executor = model->executor(bindings);
    return executor ? describe((*executor)->plan(), {}) : executor.error().message;
  }
};

/// Scores below zero are less than a half once they are squashed: none is kept.
Tensor low(const Shape& shape) { return Tensor(shape, std::vector<float>(static_cast<size_t>(shape.elements()), -1.f)); }

TEST_F(SizedSteps, ADetectorRunsWholeWithItsSuppression) {
  const std::string text = described(kDetector, {{"batch", 2}});
  EXPECT_THAT(text, HasSubstr("suppression_cuda"));
  EXPECT_THAT(text, Not(HasSubstr("on the CPU"))) << text;
  for (const int64_t batch : {1, 3}) {
    const Shape boxes{batch, 40, 4}, scores{batch, 3, 40};
    expect_same(kDetector,
                {{random_tensor(boxes, 1), random_tensor(scores, 2)},
                 {random_tensor(boxes, 3), random_tensor(scores, 4)},
                 {random_tensor(boxes, 3), low(scores)},
                 {random_tensor(boxes, 5), random_tensor(scores, 6)}},
                {{"batch", batch}});
  }
}

/// Boxes and scores stay where they are; what comes back is one number, and what the model answers.
TEST_F(SizedSteps, OnlyTheCountAndTheAnswersLeaveTheDevice) {
  const auto model = on_device(kDetector);
  auto executor = model->executor({{"batch", 1}});
  ASSERT_TRUE(executor);
  std::vector<Shape> left;
  for (const Step& step : (*executor)->plan().program.steps) {
    const auto* const transfer = std::get_if<kernels::Transfer>(&step.kernel);
    if (transfer && !transfer->to_device) left.push_back((*executor)->plan().program.tensor(step.inputs[0]).shape);
  }
  EXPECT_THAT(left, testing::ElementsAre(Shape{1}, Shape{27, 3}, Shape{27, 6}));
}

TEST_F(SizedSteps, RecordsWhatNoSuchSizeReaches) {
  if (!serin::test::emulated()) GTEST_SKIP() << "only on the emulated device";
  const auto model = on_device(kDetector);
  auto executor = model->executor({{"batch", 1}});
  ASSERT_TRUE(executor);
  const uint64_t before = emulator::replays;
  for (uint32_t run = 0; run < 5; ++run)
    static_cast<void>(test::run(**executor, {random_tensor({1, 40, 4}, run), random_tensor({1, 3, 40}, 9 + run)}));
  EXPECT_EQ(emulator::replays - before, 4u) << "all runs but the first, of what goes up to the suppression";
}

TEST_F(SizedSteps, TimesOfStepsAreTakenWithTheSameAnswers) {
  const auto cpu = test::model_of(kDetector), device = on_device(kDetector);
  auto expected = cpu->executor({{"batch", 1}}), actual = device->executor({{"batch", 1}});
  ASSERT_TRUE(expected && actual);
  std::vector<int64_t> times((*actual)->plan().steps.size());
  for (uint32_t seed = 1; seed < 4; ++seed) {
    const std::vector<Tensor> inputs = {random_tensor({1, 40, 4}, seed), random_tensor({1, 3, 40}, 9 + seed)};
    std::vector<Tensor> outputs = test::make_outputs(**actual);
    std::vector<TensorView> out = test::views(outputs);
    const Status ran = (*actual)->run(test::views(inputs), out, times);
    ASSERT_TRUE(ran) << ran.error().message;
    const std::vector<Tensor> wanted = test::run(**expected, inputs);
    for (size_t i = 0; i < wanted.size(); ++i) test::expect_near(out[i], wanted[i].view(), "seed " + std::to_string(seed));
  }
}

TEST_F(SizedSteps, AHostsStepBetween) {
  const char* const text = R"(
    x: f32[30]
    y = Relu(x)
    p = NonZero(y)
    flat = Squeeze(p, axes=[0])
    g = Gather(y, flat)
    h = Softmax(g, axis=0)
    e = Mul(h, g)
    return e, p
  )";
  expect_same(text, {{random_tensor({30}, 1)}, {random_tensor({30}, 2)}, {low({30})}, {random_tensor({30}, 3)}});
  EXPECT_THAT(described(text), HasSubstr("non_zero_cuda"));
}

TEST_F(SizedSteps, WhatIsSizedTwice) {
  const char* const text = R"(
    x: f32[20,6]
    c: bool[20]
    a = Tanh(x)
    some = Compress(a, c, axis=0)
    twice = Mul(some, f32{2})
    p = NonZero(twice)
    return twice, p
  )";
  std::vector<std::vector<Tensor>> inputs;
  for (uint32_t seed = 1; seed < 5; ++seed) {
    Tensor chosen(DType::kBool, {20});
    for (int64_t i = 0; i < 20; ++i) chosen.view().as<bool>()[i] = (i * seed) % 3 == 0;
    inputs.push_back({random_tensor({20, 6}, seed), chosen});
  }
  expect_same(text, inputs);
  EXPECT_THAT(described(text), HasSubstr("compress_cuda"));
}

/// A step of the device whose result only the host reads, and the other way round.
TEST_F(SizedSteps, AHostsStepDecidesForTheDevice) {
  const char* const text = R"(
    x: f32[30]
    u, f, i, n = Unique(x)
    t = Tanh(u)
    y = Add(t, t)
    return y
  )";
  expect_same(text, {{random_tensor({30}, 1)}, {Tensor({30}, std::vector<float>(30, 2.f))}, {random_tensor({30}, 2)}});
}

TEST_F(SizedSteps, AnIndexThatIsOutOfRangeBehindASizeNamesItsNode) {
  const auto model = on_device(R"(
    x: f32[30]
    small: f32[3]
    y = Relu(x)
    p = NonZero(y)
    flat = Squeeze(p, axes=[0])
    g = Gather(small, flat)
    z = Tanh(g)
    return z
  )");
  auto executor = model->executor({});
  ASSERT_TRUE(executor);
  for (int run = 0; run < 3; ++run) {
    std::vector<Tensor> outputs = test::make_outputs(**executor);
    std::vector<TensorView> out = test::views(outputs);
    const Status status = (*executor)->run(test::views({random_tensor({30}, 1), random_tensor({3}, 2)}), out);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, HasSubstr("node 'g' (Gather): index "));
    EXPECT_THAT(status.error().message, HasSubstr("is out of range for axis 0 of size 3"));
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  }
}

TEST_F(SizedSteps, ASizeThatDoesNotFitWhatItMeetsNamesItsNode) {
  const auto model = on_device(R"(
    x: f32[6]
    w: f32[6]
    p = NonZero(x)
    flat = Squeeze(p, axes=[0])
    g = Gather(x, flat)
    y = Add(g, w)
    return y
  )");
  auto executor = model->executor({});
  ASSERT_TRUE(executor);
  for (const size_t kept : {6, 4, 0, 1, 4, 6}) {
    Tensor x({6}, std::vector<float>(6, 0.f));
    std::fill_n(x.view().as<float>(), kept, 2.f);
    std::vector<Tensor> outputs = test::make_outputs(**executor);
    std::vector<TensorView> out = test::views(outputs);
    const Status status = (*executor)->run(test::views({x, Tensor({6}, std::vector<float>(6, 1.f))}), out);
    ASSERT_EQ(static_cast<bool>(status), kept == 6 || kept == 1) << kept;
    if (status)
      EXPECT_EQ(outputs[0].values<float>(), std::vector<float>(6, 3.f)) << kept;
    else
      EXPECT_EQ(status.error().message, "node 'y' (Add): [" + std::to_string(kept) + "] does not broadcast to [6]");
  }
}

}  // namespace
}  // namespace serin::engine
