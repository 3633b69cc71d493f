// What a model takes of a device: known before anything is taken, taken once, and what was planned to the byte. On the emulated device, which counts.

#include <cuda_runtime.h>
#include <gmock/gmock.h>

#include "runtime/engine/device/device_arena.h"
#include "runtime/engine/plan.h"
#include "tests/gpu/device_under_test.h"
#include "tests/runtime/engine/support.h"

namespace serin::engine {
namespace {

using test::random_tensor;
using testing::HasSubstr;

class DeviceMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (!serin::test::emulated()) GTEST_SKIP() << "only on the emulated device";
  }
  static const kernels::Backend& backend() {
    static const auto backend = serin::test::open_device();
    return *backend;
  }
  static std::shared_ptr<Model> model(LoadOptions options = {}) {
    options.device = &backend();
    return test::model_of(kNet, test::best(), std::move(options));
  }
  static size_t allocated() { return emulator::devices[0].allocated_bytes; }
  static std::vector<graph::Bindings> batches(std::initializer_list<int64_t> sizes) {
    std::vector<graph::Bindings> bindings;
    for (const int64_t size : sizes) bindings.push_back({{"batch", size}});
    return bindings;
  }

  // 6 * 9 * 4 = 216 bytes and 9 * 4 = 36 bytes, at multiples of 256 each.
  static constexpr const char* kNet = R"(
    x: f32[batch,6]
    a = MatMul(x, w[6,9])
    b = Add(a, v[9])
    c = Gelu(b)
    return c
  )";
};

TEST_F(DeviceMemory, M13_NothingIsTakenBeforeThereIsRoomForAll) {
  const size_t before = allocated();
  const auto loaded = model();
  EXPECT_EQ(allocated(), before) << "a model that is loaded has taken nothing yet";
  auto plan = loaded->executor({{"batch", 8}});
  ASSERT_TRUE(plan);
  const size_t arena = (*plan)->plan().device_bytes + 256, staging = (*plan)->plan().arena_bytes + 256;
  plan->reset();

  const auto fresh = model();
  const size_t start = allocated(), needed = 512 + 3 * arena;
  emulator::devices[0].memory_bytes = start + needed - 1;
  const auto refused = fresh->device_arenas(batches({1, 8}), 3);
  EXPECT_EQ(allocated(), start);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kTooLarge);
  EXPECT_EQ(refused.error().message, "needs " + std::to_string(needed) + " bytes (weights 512, arena " + std::to_string(3 * arena) +
                                         ", staging " + std::to_string(3 * staging) + " on the host); emulated has " +
                                         std::to_string(needed - 1) + " free of " +
                                         std::to_string(backend().device()->info().memory_bytes));

  emulator::devices[0].memory_bytes = start + needed;
  const auto taken = fresh->device_arenas(batches({1, 8}), 3);
  emulator::devices[0].memory_bytes = size_t{1} << 40;
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(taken->size(), 3u);
  EXPECT_EQ(allocated() - start, needed) << "planned is allocated, to the byte";
  EXPECT_EQ(fresh->device_bytes().weights, 512u);
  EXPECT_EQ(fresh->device_bytes().arena, 3 * arena);
  EXPECT_EQ(fresh->device_bytes().staging, 3 * staging);
}

TEST_F(DeviceMemory, SizesOfAnInstanceTakeTurnsInItsArena) {
  const auto loaded = model();
  const auto arenas = loaded->device_arenas(batches({1, 4, 8}), 1);
  ASSERT_TRUE(arenas && arenas->size() == 1);
  const size_t before = allocated();
  std::vector<std::unique_ptr<Executor>> executors;
  for (const int64_t batch : {1, 4, 8}) {
    auto executor = loaded->executor({{"batch", batch}}, arenas->front());
    ASSERT_TRUE(executor);
    executors.push_back(std::move(*executor));
  }
  EXPECT_EQ(allocated(), before);
  const auto expected = test::model_of(kNet);
  for (int run = 0; run < 4; ++run) {
    for (const auto& executor : executors) {
      const int64_t batch = executor->inputs()[0].shape[0];
      const test::Tensor x = random_tensor({batch, 6}, static_cast<uint32_t>(run + 1));
      auto on_host = expected->executor({{"batch", batch}});
      test::expect_near(test::run(*executor, {x})[0].view(), test::run(**on_host, {x})[0].view(), "batch " + std::to_string(batch));
    }
  }
  auto larger = loaded->executor({{"batch", 64}}, arenas->front());
  ASSERT_TRUE(larger);
  EXPECT_EQ(allocated() - before, (*larger)->plan().device_bytes + 256) << "what the arena does not hold has one of its own";
}

TEST_F(DeviceMemory, AModelKeepsToItsLimit) {
  const auto unlimited = model();
  auto one = unlimited->device_arenas(batches({1}), 1);
  ASSERT_TRUE(one);
  const DeviceBytes held = unlimited->device_bytes();
  const auto loaded = model({.device_limit = held.weights + held.arena});
  const auto fits = loaded->device_arenas(batches({1}), 1);
  ASSERT_TRUE(fits) << fits.error().message;
  const size_t before = allocated();
  const auto refused = loaded->executor({{"batch", 64}}, fits->front());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kTooLarge);
  EXPECT_THAT(refused.error().message, HasSubstr("it may hold " + std::to_string(held.weights + held.arena) + " of emulated and holds " +
                                                 std::to_string(held.weights + held.arena)));
  EXPECT_EQ(allocated(), before);
  EXPECT_TRUE(loaded->executor({{"batch", 1}}, fits->front()));
}

TEST_F(DeviceMemory, LoadsThatCompeteTakeTheWeightsOnce) {
  const auto loaded = model();
  const size_t before = allocated();
  const auto first = loaded->device_arenas(batches({1}), 1), second = loaded->device_arenas(batches({1}), 1);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(loaded->device_bytes().weights, 512u);
  EXPECT_EQ(allocated() - before, 512 + loaded->device_bytes().arena);
}

TEST_F(DeviceMemory, PrioritiesReachTheDevice) {
  for (const auto& [priority, expected] : {std::pair(-1, 0), {0, -2}, {1, -5}}) {
    const auto queue = backend().device()->make_queue(priority);
    EXPECT_EQ(static_cast<cudaStream_t>(queue->native())->priority, expected);
  }
  const auto loaded = model({.device_priority = 1});
  const auto arenas = loaded->device_arenas(batches({1}), 1);
  ASSERT_TRUE(arenas);
  EXPECT_EQ(static_cast<cudaStream_t>(arenas->front()->on_device().queue->native())->priority, -5);
}

/// A thread that works with one device may ask another, or give back what that one lent.
TEST_F(DeviceMemory, OnlyMakeCurrentChangesTheDeviceOfAThread) {
  emulator::device_count = 2;
  backend().device()->make_current();
  const auto expect_unchanged = [](const char* by) {
    int now = -1;
    EXPECT_EQ(cudaGetDevice(&now), cudaSuccess);
    EXPECT_EQ(now, 0) << by;
  };
  std::string why;
  const auto other = kernels::cuda::open_device(1, why);
  ASSERT_TRUE(other) << why;
  expect_unchanged("open_device");
  static_cast<void>(other->free_bytes());
  expect_unchanged("free_bytes");
  std::byte* const here = other->allocate(100);
  expect_unchanged("allocate");
  std::byte* const pinned = other->allocate_pinned(100);
  expect_unchanged("allocate_pinned");
  auto queue = other->make_queue();
  expect_unchanged("make_queue");
  EXPECT_FALSE(queue->finish());
  expect_unchanged("finish");
  other->make_current();
  EXPECT_FALSE(queue->begin_recording());
  kernels::Fault fault;
  auto recording = queue->end_recording(fault);
  EXPECT_TRUE(recording) << fault.value_or("");
  EXPECT_EQ(other->allocate(size_t{1} << 41), nullptr);
  backend().device()->make_current();
  EXPECT_EQ(other->allocate(size_t{1} << 41), nullptr);
  expect_unchanged("what is refused");
  recording.reset();
  expect_unchanged("the end of a recording");
  queue.reset();
  expect_unchanged("the end of a queue");
  other->release(here);
  expect_unchanged("release");
  other->release_pinned(pinned);
  expect_unchanged("release_pinned");
}

TEST_F(DeviceMemory, TwoDevicesHoldWhatIsTheirs) {
  emulator::device_count = 2;
  std::string why;
  const kernels::Backend other("cuda emulated", kernels::cuda::make_table(), std::shared_ptr(kernels::cuda::open_device(1, why)));
  const auto here = model(), there = test::model_of(kNet, test::best(), {.device = &other});
  const test::Tensor x = random_tensor({4, 6}, 1);
  auto mine = here->executor({{"batch", 4}}), theirs = there->executor({{"batch", 4}});
  ASSERT_TRUE(mine && theirs) << (theirs ? "" : theirs.error().message);
  EXPECT_EQ(emulator::devices[1].allocated_bytes, there->device_bytes().weights + there->device_bytes().arena);
  for (int run = 0; run < 3; ++run)  // by turns on one thread: each goes to its own device, or the emulator ends the program
    test::expect_near(test::run(**mine, {x})[0].view(), test::run(**theirs, {x})[0].view(), "run " + std::to_string(run));

  emulator::devices[1].sticky = cudaErrorECCUncorrectable;
  std::vector<test::Tensor> outputs = test::make_outputs(**theirs);
  std::vector<TensorView> out = test::views(outputs);
  const Status lost = (*theirs)->run(test::views({x}), out);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Code::kUnavailable);
  EXPECT_TRUE(other.device()->lost());
  EXPECT_FALSE(backend().device()->lost());
  EXPECT_EQ(test::run(**mine, {x}).size(), 1u) << "the other device goes on";
  emulator::devices[1].sticky = cudaSuccess;  // so that what it holds can be given back
}

}  // namespace
}  // namespace serin::engine
