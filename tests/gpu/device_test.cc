// Models whose steps run on a device, the emulated one unless tests/gpu/run brings another: they answer as on the CPU, in the first run, the one that records and those that replay; and what goes wrong
// on a device ends in an error that names it.

#include <cuda_runtime.h>
#include <gmock/gmock.h>

#include <chrono>
#include <cstring>
#include <numeric>

#include "runtime/engine/plan.h"
#include "tests/gpu/device_under_test.h"
#include "tests/runtime/engine/support.h"

namespace serin::engine {
namespace {

using test::random_tensor;
using test::Tensor;
using testing::HasSubstr;

const kernels::Backend& device_backend() {
  static const auto backend = serin::test::open_device();
  return *backend;
}

/// What counts launches and makes faults is the emulated <cuda_runtime.h>.
#define SERIN_NEEDS_EMULATION() \
  if (!serin::test::emulated()) GTEST_SKIP() << "only on the emulated device"

std::shared_ptr<Model> on_device(std::string_view text) { return test::model_of(text, test::best(), {.device = &device_backend()}); }

std::string placed(const Plan& plan) {
  std::string text;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (!text.empty()) text += ' ';
    text += plan.program.steps[i].node + (plan.steps[i].memory == Memory::kDevice ? "*" : "");
  }
  return text;
}

/// Runs on the CPU and several times on the device.
void expect_same(std::string_view text, const std::vector<Tensor>& inputs, const graph::Bindings& bindings = {}) {
  const auto cpu = test::model_of(text), device = on_device(text);
  ASSERT_TRUE(cpu && device);
  auto expected = cpu->executor(bindings), actual = device->executor(bindings);
  ASSERT_TRUE(expected && actual) << (actual ? "" : actual.error().message);
  EXPECT_GT((*actual)->plan().device_bytes, 0u);
  const std::vector<Tensor> wanted = test::run(**expected, inputs);
  for (int run = 0; run < 4; ++run) {
    const std::vector<Tensor> got = test::run(**actual, inputs);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) test::expect_near(got[i].view(), wanted[i].view(), "run " + std::to_string(run));
  }
}

constexpr const char* kNet = R"(
  x: f32[2,3,12,12]
  a = Conv(x, w[8,3,3,3], pads=[1,1,1,1])
  b = Relu(a)
  c = MaxPool(b, kernel_shape=[2,2], strides=[2,2])
  d = Conv(c, v[8,8,1,1])
  e = Add(d, c)
  f = GlobalAveragePool(e)
  g = Flatten(f)
  h = MatMul(g, u[8,5])
  i = Softmax(h)
  return i
)";

TEST(OnDevice, AConvolutionNetRunsWhole) {
  expect_same(kNet, {random_tensor({2, 3, 12, 12}, 1)});
  const auto model = on_device(kNet);
  auto executor = model->executor({});
  ASSERT_TRUE(executor);
  const Plan& plan = (*executor)->plan();
  for (size_t i = 1; i + 1 < plan.steps.size(); ++i) EXPECT_EQ(plan.steps[i].memory, Memory::kDevice) << placed(plan);
}

TEST(OnDevice, TensorsBeginWhereLibrariesExpectThem) {
  const auto model = on_device(kNet);
  auto executor = model->executor({});
  ASSERT_TRUE(executor);
  const Plan& plan = (*executor)->plan();
  int on_device = 0;
  for (size_t i = 0; i < plan.places.size(); ++i) {
    const auto& tensor = plan.program.tensors[i];
    if (plan.places[i].in != Place::In::kArena || tensor.memory != Memory::kDevice || tensor.base != kNoTensor) continue;
    ++on_device;
    EXPECT_EQ(plan.places[i].offset % 256, 0u) << tensor.name;
  }
  EXPECT_GT(on_device, 5);
}

TEST(OnDevice, ReplaysWhatItRecorded) {
  SERIN_NEEDS_EMULATION();
  const auto model = on_device(kNet);
  auto executor = model->executor({});
  ASSERT_TRUE(executor);
  const Tensor x = random_tensor({2, 3, 12, 12}, 1);
  const uint64_t before = emulator::launches, replayed = emulator::replays;
  static_cast<void>(test::run(**executor, {x}));
  const uint64_t first = emulator::launches - before;
  static_cast<void>(test::run(**executor, {x}));
  static_cast<void>(test::run(**executor, {random_tensor({2, 3, 12, 12}, 2)}));
  EXPECT_EQ(emulator::launches - before, 3 * first);
  EXPECT_EQ(emulator::replays - replayed, 2u);
}

constexpr const char* kThreeInTwoOut = R"(
  x: f32[4,6]
  y: f32[4,6]
  z: f32[4,6]
  a = Relu(x)
  b = Mul(a, y)
  c = Tanh(b)
  d = Add(c, z)
  return b, d
)";

TEST(OnDevice, HowManyInputsAndOutputsThereAreCutsNoRecording) {
  SERIN_NEEDS_EMULATION();
  const auto model = on_device(kThreeInTwoOut);
  auto executor = model->executor({});
  ASSERT_TRUE(executor);
  const uint64_t replayed = emulator::replays;
  for (uint32_t run = 0; run < 4; ++run)
    static_cast<void>(test::run(**executor, {random_tensor({4, 6}, run), random_tensor({4, 6}, 7), random_tensor({4, 6}, 8)}));
  EXPECT_EQ(emulator::replays - replayed, 3u) << "one for each run but the first";
}

/// As they follow each other in a replay, not each by itself with the host waiting for it.
TEST(OnDevice, TimesOfStepsAreThoseOfARecording) {
  const auto model = on_device(kThreeInTwoOut);
  auto executor = model->executor({});
  ASSERT_TRUE(executor);
  const std::vector<Tensor> inputs = {random_tensor({4, 6}, 1), random_tensor({4, 6}, 2), random_tensor({4, 6}, 3)};
  const std::vector<Tensor> wanted = test::run(**executor, inputs);
  std::vector<Tensor> outputs = test::make_outputs(**executor);
  std::vector<TensorView> out = test::views(outputs);
  std::vector<int64_t> step_ns((*executor)->plan().steps.size());
  const uint64_t replayed = emulator::replays;
  const auto begin = std::chrono::steady_clock::now();
  for (int run = 0; run < 4; ++run) {
    const Status ran = (*executor)->run(test::views(inputs), out, step_ns);
    ASSERT_TRUE(ran) << ran.error().message;
    for (size_t i = 0; i < out.size(); ++i) test::expect_near(out[i], wanted[i].view(), "run " + std::to_string(run));
  }
  const int64_t all = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  if (serin::test::emulated()) {
    EXPECT_EQ(emulator::replays - replayed, 3u);
  }
  EXPECT_LE(std::accumulate(step_ns.begin(), step_ns.end(), int64_t{0}), all);
  for (size_t i = 0; i < step_ns.size(); ++i) EXPECT_GT(step_ns[i], 0) << placed((*executor)->plan());
}

/// A part of a device, as the driver hands it out (MIG), is no whole one to whoever reads its id.
TEST(OnDevice, PartsOfADeviceAreNamedAsSuch) {
  SERIN_NEEDS_EMULATION();
  std::string why;
  const auto id = [&why] { return kernels::cuda::open_device(0, why)->info().id; };
  EXPECT_EQ(id().substr(0, 4), "GPU-");
  emulator::devices[0].name = "emulated MIG 1g.18gb";
  const std::string part = id();
  emulator::devices[0].name = "emulated";
  EXPECT_EQ(part, "MIG-00000000-0000-0000-0000-000000000000");
}

/// What lies in the executor's own memory stays there from run to run, and so do the answers.
TEST(OnDevice, InputsAndOutputsMayLieWhereTheDeviceCopiesFromAndTo) {
  const auto cpu = test::model_of(kThreeInTwoOut), device = on_device(kThreeInTwoOut);
  auto expected = cpu->executor({}), actual = device->executor({});
  ASSERT_TRUE(expected && actual);
  for (const TensorView& none : (*expected)->staged_inputs()) EXPECT_EQ(none.data, nullptr) << "of the CPU";
  std::vector<TensorView> inputs = (*actual)->staged_inputs(), outputs = (*actual)->staged_outputs();
  ASSERT_EQ(inputs.size(), 3u);
  ASSERT_EQ(outputs.size(), 2u);
  const Tensor own = random_tensor({4, 6}, 9);
  std::vector<Tensor> given;
  for (uint32_t i = 0; i < 3; ++i) {
    given.push_back(random_tensor({4, 6}, i));
    ASSERT_NE(inputs[i].data, nullptr);
    std::memcpy(inputs[i].data, given[i].view().data, inputs[i].bytes());
  }
  for (int run = 0; run < 4; ++run) {
    if (run == 3) inputs[1] = own.view(), given[1] = own;  // a caller's memory again
    const std::vector<Tensor> wanted = test::run(**expected, given);
    for (const TensorView& output : outputs) std::memset(output.data, 0xFF, output.bytes());
    const Status ran = (*actual)->run(inputs, outputs);
    ASSERT_TRUE(ran) << ran.error().message;
    for (size_t i = 0; i < outputs.size(); ++i) test::expect_near(outputs[i], wanted[i].view(), "run " + std::to_string(run));
  }
}

/// The step that refuses is the first of all (what clears the fault), one between, or the last.
TEST(OnDevice, RunsStepByStepWhatCannotBeRecorded) {
  SERIN_NEEDS_EMULATION();
  const Tensor x = random_tensor({2, 3, 12, 12}, 1);
  const auto model = on_device(kNet);
  auto counting = model->executor({});
  ASSERT_TRUE(counting);
  const uint64_t before = emulator::launches;
  const std::vector<Tensor> wanted = test::run(**counting, {x});
  const auto launches = static_cast<int>(emulator::launches - before);
  for (const int step : {0, 2, launches}) {
    SCOPED_TRACE(step);
    auto executor = model->executor({});
    ASSERT_TRUE(executor);
    const uint64_t replayed = emulator::replays;
    for (int run = 0; run < 4; ++run) {
      emulator::records_before_refusal = run == 1 ? step : -1;
      const std::vector<Tensor> got = test::run(**executor, {x});
      ASSERT_EQ(got.size(), wanted.size());
      test::expect_near(got[0].view(), wanted[0].view(), "run " + std::to_string(run));
      EXPECT_EQ(emulator::records_before_refusal, -1) << "nothing was recorded that could be refused";
    }
    EXPECT_EQ(emulator::replays, replayed) << "half a recording was replayed";
    EXPECT_FALSE(device_backend().device()->lost()) << *device_backend().device()->lost();
  }
}

TEST(OnDevice, WhatTheDeviceLacksRunsBetween) {
  expect_same(R"(
    x: f32[4,6]
    a = Relu(x)
    b = Sinh(a)
    c = Mul(b, a)
    d = Tanh(x)
    return c, d
  )",
              {random_tensor({4, 6}, 1)});
}

TEST(OnDevice, BodiesOfIfRunOnTheHost) {
  Tensor flag(DType::kBool, {});
  *flag.view().as<bool>() = true;
  expect_same(R"(
    flag: bool[]
    x: f32[4]
    z = Neg(x)
    y = If(flag, x, z)
      then:
        x: f32[4]
        z: f32[4]
        a = Mul(x, 10.0)
        b = Add(a, z)
        return b
      else:
        x: f32[4]
        z: f32[4]
        return x
    out = Tanh(y)
    return out
  )",
              {flag, random_tensor({4}, 1)});
}

TEST(OnDevice, SeveralSizesShareTheWeights) {
  const char* const text = R"(
    x: f32[batch,6]
    a = MatMul(x, w[6,9])
    b = Gelu(a)
    return b
  )";
  for (const int64_t batch : {1, 5}) expect_same(text, {random_tensor({batch, 6}, 1)}, {{"batch", batch}});
  SERIN_NEEDS_EMULATION();
  const auto model = on_device(text);
  const size_t before = emulator::devices[0].allocated_bytes;
  auto one = model->executor({{"batch", 1}});
  const size_t with_one = emulator::devices[0].allocated_bytes - before;
  auto five = model->executor({{"batch", 5}});
  EXPECT_EQ(emulator::devices[0].allocated_bytes - before - with_one, (*five)->plan().device_bytes + 256) << "only the arena is new";
}

TEST(OnDevice, NamesTheNodeOfAnIndexThatIsOutOfRange) {
  const auto model = on_device(R"(
    x: f32[9,3]
    i: i64[2]
    g = Gather(x, i)
    y = Relu(g)
    return y
  )");
  auto executor = model->executor({});
  ASSERT_TRUE(executor);
  const Tensor x = random_tensor({9, 3}, 1), bad({2}, std::vector<int64_t>{3, 12}), good({2}, std::vector<int64_t>{3, -1});
  for (int run = 0; run < 4; ++run) {
    std::vector<Tensor> outputs = test::make_outputs(**executor);
    std::vector<TensorView> out = test::views(outputs);
    const Status status = (*executor)->run(test::views({x, bad}), out);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, HasSubstr("node 'g' (Gather): index 12 is out of range for axis 0 of size 9"));
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_EQ(test::run(**executor, {x, good})[0].values<float>().size(), 6u);
  }
}

TEST(OnDevice, RefusesWhatItHasNoMemoryFor) {
  SERIN_NEEDS_EMULATION();
  const auto model = on_device(kNet);
  emulator::devices[0].memory_bytes = emulator::devices[0].allocated_bytes + 1000;
  const auto refused = model->executor({});
  emulator::devices[0].memory_bytes = size_t{1} << 40;
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("emulated has 1000 free of"));
  EXPECT_TRUE(model->executor({}));
}

TEST(OnDevice, GivesItsMemoryBack) {
  SERIN_NEEDS_EMULATION();
  const size_t before = emulator::devices[0].allocated_bytes;
  {
    const auto model = on_device(kNet);
    auto executor = model->executor({});
    EXPECT_GT(emulator::devices[0].allocated_bytes, before);
  }
  EXPECT_EQ(emulator::devices[0].allocated_bytes, before);
}

/// It is refused while it is enqueued (the first one, or one between), while it is recorded, or as a replay.
TEST(OnDevice, ARunThatIsRefusedFailsAlone) {
  SERIN_NEEDS_EMULATION();
  const auto model = on_device(kNet);
  auto executor = model->executor({});
  ASSERT_TRUE(executor);
  const Tensor x = random_tensor({2, 3, 12, 12}, 1);
  const auto refused = [&] {
    emulator::devices[0].refusals = 1;
    std::vector<Tensor> outputs = test::make_outputs(**executor);
    std::vector<TensorView> out = test::views(outputs);
    const Status ran = (*executor)->run(test::views({x}), out);
    EXPECT_EQ(emulator::devices[0].refusals, 0);
    return ran;
  };
  const Status first = refused();
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().message, "the device refused the run: cudaErrorMemoryAllocation: cudaErrorMemoryAllocation");
  EXPECT_EQ(first.error().code, Code::kInternal);
  EXPECT_FALSE(device_backend().device()->lost());
  EXPECT_TRUE(refused()) << "what cannot be recorded is enqueued";
  const std::vector<Tensor> wanted = test::run(**model->executor({}), {x});
  for (int run = 0; run < 3; ++run) test::expect_near(test::run(**executor, {x})[0].view(), wanted[0].view(), "run " + std::to_string(run));

  auto recorded = model->executor({});
  for (int run = 0; run < 3; ++run) static_cast<void>(test::run(**recorded, {x}));
  std::swap(*executor, *recorded);
  const Status replay = refused();
  ASSERT_FALSE(replay);
  EXPECT_THAT(replay.error().message, HasSubstr("the device refused the run: cudaErrorMemoryAllocation"));
  test::expect_near(test::run(**executor, {x})[0].view(), wanted[0].view(), "after it");
}

TEST(OnDeviceDeath, ALostDeviceFailsEveryRun) {  // in a process of its own: a device stays lost
  SERIN_NEEDS_EMULATION();
  EXPECT_EXIT(
      {
        const auto model = on_device(kNet);
        auto executor = model->executor({});
        const Tensor x = random_tensor({2, 3, 12, 12}, 1);
        static_cast<void>(test::run(**executor, {x}));
        emulator::devices[0].sticky = cudaErrorIllegalAddress;
        std::vector<Tensor> outputs = test::make_outputs(**executor);
        std::vector<TensorView> out = test::views(outputs);
        const Status first = (*executor)->run(test::views({x}), out);
        emulator::devices[0].sticky = cudaSuccess;  // the driver would go on failing; ours must remember by itself
        const auto next = model->executor({});
        const bool good = !first && first.error().code == Code::kUnavailable && !next && next.error().code == Code::kUnavailable;
        std::fprintf(stderr, "%s / %s", first.error().message.c_str(), next ? "" : next.error().message.c_str());
        std::exit(good ? 0 : 1);
      },
      testing::ExitedWithCode(0), "cudaErrorIllegalAddress.*cudaErrorIllegalAddress");
}

}  // namespace
}  // namespace serin::engine
