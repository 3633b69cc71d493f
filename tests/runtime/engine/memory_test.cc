// What a model holds on to: nothing grows with the number of shapes it has seen, and arenas are as small as they can be.

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include "runtime/engine/plan.h"
#include "tests/runtime/engine/fixtures.h"

namespace serin::engine {
namespace {

size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

/// A product, a convolution on channel blocks whose kernel depends on the size, and a constant that is computed for each size.
constexpr std::string_view kDynamic = R"(
  x: f32[batch,16,height,width]
  conv = Conv(x, w[16,16,3,3], pads=[1,1,1,1])
  act = Relu(conv)
  s = Shape(act)
  zero = ConstantOfShape(s)
  shift = Exp(zero)
  sum = Add(act, shift)
  pool = GlobalAveragePool(sum)
  flat = Flatten(pool)
  y = MatMul(flat, v[16,10])
  return y
)";

class RandomShapes {
 public:
  explicit RandomShapes(Model& model) : model_(model) {}

  /// Plans and runs `count` more of them.
  void run(int count) {
    for (int i = 0; i < count; ++i) {
      const graph::Bindings bindings{{"batch", at_most(3)}, {"height", at_most(40)}, {"width", at_most(40)}};
      const auto executor = model_.executor(bindings);
      ASSERT_TRUE(executor) << executor.error().message;
      std::vector<test::Tensor> inputs;
      for (const TensorInfo& info : (*executor)->inputs()) inputs.push_back(test::random_tensor(info.shape, 1));
      test::run(**executor, inputs);
    }
  }

 private:
  int64_t at_most(int64_t size) { return std::uniform_int_distribution<int64_t>(1, size)(random_); }

  Model& model_;
  std::mt19937 random_{4};
};

TEST(Memory, StaysFlatOverRandomShapes) {
  const bool is_long = std::getenv("SERIN_LONG") != nullptr;
  const int count = is_long ? 10'000 : 300;
  const auto model = test::model_of(kDynamic, test::best(), {.max_plans = 8});
  ASSERT_TRUE(model);
  RandomShapes shapes(*model);
  shapes.run(100);
  malloc_trim(0);
  const size_t before = resident_bytes(), weights = model->weight_bytes();
  const Model::CacheCounters counted = model->plan_cache();
  shapes.run(count);

  const Model::CacheCounters counters = model->plan_cache();
  const uint64_t misses = counters.misses - counted.misses;
  EXPECT_EQ(counters.hits - counted.hits + misses, static_cast<uint64_t>(count));
  EXPECT_EQ(counters.evictions - counted.evictions, misses) << "the cache was full before, so each new plan displaces one";
  // A convolution has a few layouts of weights at most, for large images and for small ones.
  EXPECT_LE(model->weight_bytes(), weights + (64 << 10));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  malloc_trim(0);
  EXPECT_LE(resident_bytes(), before + (2 << 20)) << "after " << count << " shapes";
#endif
}

TEST(Memory, AShapeThatIsKnownIsFoundAndMakesNothing) {
  const auto model = test::model_of(kDynamic, test::best());
  ASSERT_TRUE(model);
  const graph::Bindings bindings{{"batch", 2}, {"height", 8}, {"width", 9}};
  const auto first = model->executor(bindings), second = model->executor(bindings);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(&(*first)->plan(), &(*second)->plan());
  EXPECT_EQ(model->plan_cache().misses, 1u);
  EXPECT_EQ(model->plan_cache().hits, 1u);
}

TEST(Memory, ArenasAreWithinTwoPercentOfWhatIsAliveAtOnce) {
  size_t plans = 0;
  for (const test::Fixture& fixture : test::fixtures()) {
    const auto model = Model::load(fixture.model, test::best(), {});
    ASSERT_TRUE(model) << fixture.name << ": " << model.error().message;
    if (!(*model)->planned()) continue;
    for (const int64_t size : {1, 2, 8, 32}) {
      graph::Bindings bindings;
      for (const std::string& symbol : (*model)->symbols()) bindings[symbol] = size;
      const auto executor = (*model)->executor(bindings);
      if (!executor) continue;  // sizes that this model cannot have
      const Plan& plan = (*executor)->plan();
      EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.02 * static_cast<double>(plan.live_bytes)) << fixture.name << " at " << size;
      ++plans;
    }
  }
  EXPECT_GT(plans, 20u);
}

TEST(Memory, ThreadsThatLoadAtOncePackAWeightOnce) {
  kernels::PackedWeights weights;
  std::atomic<int> packed{0};
  std::vector<std::shared_ptr<const kernels::PackedWeights::Buffer>> buffers(4);
  {
    std::vector<std::jthread> threads;
    for (auto& buffer : buffers) {
      threads.emplace_back([&] {
        buffer = weights.get(7, "layout", 64, [&](std::byte*) {
          ++packed;
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        });
      });
    }
  }
  EXPECT_EQ(packed, 1);
  EXPECT_EQ(buffers[0], buffers[3]);
  EXPECT_EQ(weights.bytes(), 64u);
  buffers.clear();
  EXPECT_EQ(weights.bytes(), 0u);
}

TEST(Memory, PlansAreTheSameHoweverManyThreadsPrepareThem) {
  // More than four megabytes of constants, so that the threads do share the work.
  constexpr std::string_view kLarge = "x: f32[2,1024]\na = MatMul(x, w[1024,1024])\nb = Relu(a)\ny = MatMul(b, v[1024,512])\nreturn y\n";
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 4}) {
    const auto model = test::model_of(kLarge, test::best(), {.threads = threads});
    ASSERT_TRUE(model);
    const auto executor = model->executor({});
    ASSERT_TRUE(executor);
    const auto outputs = test::run(**executor, {test::random_tensor(Shape{2, 1024}, 3)});
    results.push_back(outputs[0].values<float>());
  }
  for (size_t i = 0; i < results[0].size(); ++i) {
    ASSERT_NEAR(results[1][i], results[0][i], 1e-3) << i;
    ASSERT_NEAR(results[2][i], results[0][i], 1e-3) << i;
  }
}

}  // namespace
}  // namespace serin::engine
