// Several rows as one: the one that takes the shortest runs, what was measured is remembered, and where there is no choice nothing is measured. What a
// trial does without memory.

#include "kernels/cuda/fastest.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "kernels/cuda/device.h"
#include "kernels/cuda/fault.h"
#include "kernels/cuda/trial.h"
#include "kernels/make_kernel.h"
#include "tests/gpu/on_device.h"

namespace serin::kernels::cuda {
namespace {

struct Fastest : testing::Test {
  /// A row whose kernel takes a while on the device, whoever enqueues it; it counts its runs.
  KernelRow row(std::string name, int milliseconds, int& runs, bool accepts = true) {
    return {std::move(name),
            [milliseconds, &runs, accepts](const OpDesc&, PrepareContext&, std::string& reason) -> std::unique_ptr<Kernel> {
              if (!accepts) return refuse(reason, "not today");
              return make_kernel([milliseconds, &runs](Stream& stream, Inputs in, Outputs out) -> Fault {
                if (!in[0].data || !out[0].data) return "no memory";
                return fault_of(emulator::submit(static_cast<cudaStream_t>(stream.queue), [milliseconds, &runs] {
                  ++runs;
                  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
                }));
              });
            }};
  }
  /// A row whose kernel cannot run, and so cannot be timed.
  static KernelRow failing(std::string name) {
    return {std::move(name), [](const OpDesc&, PrepareContext&, std::string&) {
              return make_kernel([](Stream&, Inputs, Outputs) -> Fault { return "no memory"; });
            }};
  }
  std::unique_ptr<Kernel> prepare(const KernelRow& row, std::string& reason) {
    test::device_backend().device()->make_current();
    const kernels::test::Case c{.op = Unary{UnaryFn::kRelu}, .inputs = {test::random_tensor({4}, 1)}, .outputs = {{DType::kFloat32, {4}}}};
    PackedWeights weights;
    PrepareContext context{&weights};
    return row.prepare(c.describe(), context, reason);
  }
  const std::shared_ptr<Tactics> tactics = std::make_shared<Tactics>("", "a device");
  std::string why;
  int slow = 0, quick = 0, other = 0;
};

TEST_F(Fastest, RunsTheFasterOfTwoAndRemembersIt) {
  const KernelRow either = fastest_of({row("slow", 20, slow), row("quick", 0, quick)}, tactics);
  EXPECT_EQ(either.name, "slow or quick");
  EXPECT_EQ(prepare(either, why)->name(), "quick");
  EXPECT_GT(slow, 1);
  slow = quick = 0;
  EXPECT_EQ(prepare(either, why)->name(), "quick");
  EXPECT_EQ(slow + quick, 0) << "measured again";
}

TEST_F(Fastest, MayContendAgainAsOneRowAmongOthers) {
  const KernelRow inner = fastest_of({row("slow", 20, slow), row("quick", 0, quick)}, tactics);
  const KernelRow outer = fastest_of({inner, row("slower", 40, other)}, tactics);
  EXPECT_EQ(prepare(outer, why)->name(), "quick") << "way 1 of the inner choice was taken for way 1 of the outer one";
  EXPECT_EQ(tactics->measured(), 2u);
}

/// Three-dimensional operands of attention have the same shapes whatever the number of heads.
TEST_F(Fastest, MeasuresAttentionsOfOtherHeadsApart) {
  const KernelRow either = fastest_of({row("slow", 2, slow), row("quick", 0, quick)}, tactics);
  test::device_backend().device()->make_current();
  size_t kinds = 0;
  for (const auto& [key, value] : std::vector<std::pair<std::string, Attribute>>{
           {"q_num_heads", int64_t{4}}, {"q_num_heads", int64_t{8}}, {"kv_num_heads", int64_t{2}}, {"scale", 0.5}, {"softcap", 30.0}}) {
    kernels::test::Case c{.op = Generic{"Attention"}, .inputs = {test::random_tensor({4}, 1)}, .outputs = {{DType::kFloat32, {4}}}};
    test::set(c, key, value);
    PackedWeights weights;
    PrepareContext context{&weights};
    EXPECT_TRUE(either.prepare(c.describe(), context, why));
    EXPECT_EQ(tactics->measured(), ++kinds) << key;
  }
}

/// Whoever loses on this device is compared with the reference all the same.
TEST_F(Fastest, ShowsAllThatContend) {
  const KernelRow inner = fastest_of({row("slow", 20, slow), row("quick", 0, quick)}, tactics);
  const std::vector<KernelRow> rows = {fastest_of({inner, row("slower", 40, other)}, tactics), row("alone", 0, other)};
  std::string names;
  for (const KernelRow* const each : kernels::test::each_of(rows)) {
    names += each->name + " ";
    EXPECT_TRUE(prepare(*each, why));
  }
  EXPECT_EQ(names, "slow quick slower alone ");
  EXPECT_EQ(tactics->measured(), 0u);
}

TEST_F(Fastest, MeasuresNothingWhereOneAccepts) {
  const KernelRow either = fastest_of({row("refuses", 0, other, false), row("slow", 20, slow)}, tactics);
  EXPECT_EQ(prepare(either, why)->name(), "slow");
  EXPECT_EQ(slow + other, 0);
  EXPECT_EQ(tactics->measured(), 0u);
}

TEST_F(Fastest, SaysWhyNoneAccepts) {
  const KernelRow either = fastest_of({row("one", 0, other, false), row("two", 0, other, false)}, tactics);
  EXPECT_FALSE(prepare(either, why));
  EXPECT_EQ(why, "one: not today; two: not today");
}

TEST_F(Fastest, RunsTheFirstWhereNoneCanBeTimed) {
  const KernelRow either = fastest_of({row("refuses", 0, other, false), failing("first"), failing("second")}, tactics);
  EXPECT_EQ(prepare(either, why)->name(), "first");
  EXPECT_EQ(tactics->measured(), 0u);
}

/// Else short kernels would all seem to take as long as enqueueing them does.
TEST_F(Fastest, TimesTheDeviceAndNotWhoEnqueues) {
  test::device_backend().device()->make_current();
  Trial trial;
  const auto time = [&](int on_host, int on_device) {
    return trial.time(0, [&trial, on_host, on_device](void*) {
      std::this_thread::sleep_for(std::chrono::milliseconds(on_host));
      return emulator::submit(trial.stream(), [on_device] { std::this_thread::sleep_for(std::chrono::milliseconds(on_device)); }) ==
             cudaSuccess;
    });
  };
  EXPECT_LT(*time(30, 1), *time(1, 20));
  emulator::records_before_refusal = 0;
  EXPECT_GT(*time(5, 0), 4.0) << "what cannot be recorded is timed as it is enqueued";
  emulator::records_before_refusal = -1;
}

TEST_F(Fastest, TakesScratchOnceForAllRuns) {
  test::device_backend().device()->make_current();
  Trial trial;
  std::vector<void*> seen;
  const auto run = [&](void* scratch) {
    if (seen.empty() || seen.back() != scratch) seen.push_back(scratch);
    return true;
  };
  for (const size_t bytes : {size_t{4096}, size_t{100}, size_t{0}, size_t{4096}}) EXPECT_TRUE(trial.time(bytes, run));
  EXPECT_EQ(seen.size(), 1u);
}

TEST_F(Fastest, TimesNothingWithoutMemory) {
  constexpr size_t kMoreThanThereIs = size_t{1} << 50;
  test::device_backend().device()->make_current();
  Trial trial;
  int runs = 0;
  const auto run = [&](void* scratch) { return scratch && ++runs > 0; };
  EXPECT_FALSE(trial.time(kMoreThanThereIs, run)) << "without scratch";
  EXPECT_EQ(runs, 0);
  EXPECT_TRUE(trial.time(0, run)) << "another way may need less";
  EXPECT_EQ(trial.take(kMoreThanThereIs), nullptr);
  runs = 0;
  EXPECT_EQ(trial.take(4), nullptr);
  EXPECT_FALSE(trial.time(0, run)) << "without an operand";
  EXPECT_EQ(runs, 0);
}

/// Nobody waits in Queue::finish() while a model is loaded: without this a load that never ends leaves the server live.
TEST_F(Fastest, SeesAMeasurementThatDoesNotEnd) {
  std::string reason;
  const auto device = open_device(0, reason);
  ASSERT_TRUE(device) << reason;
  constexpr auto kLimit = std::chrono::milliseconds(20);
  EXPECT_FALSE(device->hangs(kLimit));
  emulator::devices[0].hangs = true;
  std::thread load([&] {
    device->make_current();
    Trial trial;
    static_cast<void>(trial.time(0, [](void*) { return true; }));
  });
  bool seen = false;
  for (int i = 0; i < 1000 && !seen; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    seen = device->hangs(kLimit);
  }
  emulator::devices[0].hangs = false;
  load.join();
  EXPECT_TRUE(seen);
  EXPECT_TRUE(device->lost());
}

}  // namespace
}  // namespace serin::kernels::cuda
