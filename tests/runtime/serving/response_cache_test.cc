// response_cache_test.cc: what is kept and what for, and identical requests that come while one of them is computed. What computes is held here, so that requests
// meet on purpose.

#include "runtime/serving/scheduling/response_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "runtime/serving/scheduling/caching_scheduler.h"
#include "tests/runtime/base/eventually.h"

namespace serin::serving {
namespace {

using serin::test::eventually;

JobPtr job(std::vector<float> values, Shape shape = {}) {
  auto made = std::make_shared<Job>();
  made->memory = AlignedBuffer(values.size() * sizeof(float));
  std::ranges::copy(values, reinterpret_cast<float*>(made->memory.data()));
  if (shape.rank() == 0) shape = {1, static_cast<int64_t>(values.size())};
  made->inputs = {{DType::kFloat32, shape, made->memory.data()}};
  return made;
}

JobPtr texts(const std::vector<std::string>& values) {
  auto made = std::make_shared<Job>();
  made->texts = {values};
  made->inputs = {{DType::kString, {1, static_cast<int64_t>(values.size())}, made->texts[0].data()}};
  return made;
}

Outputs number(float value, size_t elements = 1) {
  const auto memory = std::make_shared<std::vector<float>>(elements, value);
  return Outputs::of({{DType::kFloat32, {1, static_cast<int64_t>(elements)}, memory->data()}}, memory);
}
float number_in(const Outputs& outputs) { return *outputs.tensors[0].as<float>(); }

TEST(ResponseCache, TheKeyIsTheInputsAndNotTheirHash) {
  ResponseCache cache(1 << 20);
  const int owner = 0, other = 0;
  cache.insert(&owner, 1, *job({1, 2}), number(3));  // all under one hash, as if they collided
  cache.insert(&owner, 1, *job({2, 1}), number(4));
  cache.insert(&owner, 1, *texts({"1", "2"}), number(5));
  EXPECT_EQ(number_in(*cache.find(&owner, 1, *job({1, 2}))), 3);
  EXPECT_EQ(number_in(*cache.find(&owner, 1, *job({2, 1}))), 4);
  EXPECT_EQ(number_in(*cache.find(&owner, 1, *texts({"1", "2"}))), 5);
  EXPECT_FALSE(cache.find(&owner, 1, *job({1, 2}, {2, 1}))) << "another shape";
  EXPECT_FALSE(cache.find(&owner, 1, *texts({"1", "3"})));
  EXPECT_FALSE(cache.find(&owner, 2, *job({1, 2})));
  EXPECT_FALSE(cache.find(&other, 1, *job({1, 2}))) << "another version";
  cache.forget(&owner);
  EXPECT_FALSE(cache.find(&owner, 1, *job({1, 2})));
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(ResponseCache, HashesTellInputsApart) {
  EXPECT_EQ(hash_inputs(*job({1, 2})), hash_inputs(*job({1, 2})));
  EXPECT_NE(hash_inputs(*job({1, 2})), hash_inputs(*job({2, 1})));
  EXPECT_NE(hash_inputs(*job({1, 2})), hash_inputs(*job({1, 2}, {2, 1})));
  EXPECT_NE(hash_inputs(*texts({"ab", "c"})), hash_inputs(*texts({"a", "bc"})));
}

TEST(ResponseCache, WhoWasNotUsedForLongestGoesFirst) {
  const int owner = 0;
  ResponseCache cache(3 * 4096);
  for (float i = 1; i <= 2; ++i) cache.insert(&owner, 1, *job({i}), number(i, 1000));
  ASSERT_TRUE(cache.find(&owner, 1, *job({1})));
  cache.insert(&owner, 1, *job({3}), number(3, 1000));
  EXPECT_TRUE(cache.find(&owner, 1, *job({1})));
  EXPECT_FALSE(cache.find(&owner, 1, *job({2})));
  EXPECT_LE(cache.bytes(), 3u * 4096);
  cache.insert(&owner, 1, *job({4}), number(4, 10'000));
  EXPECT_FALSE(cache.find(&owner, 1, *job({4}))) << "larger than all of it";
  EXPECT_TRUE(cache.find(&owner, 1, *job({1})));
}

/// Holds what it is given until the test answers it.
class HeldScheduler final : public Scheduler {
 public:
  Status submit(JobPtr job) override {
    if (full) return Error{Code::kOverloaded, "full"};
    const std::lock_guard lock(mutex);
    jobs.push_back(std::move(job));
    return {};
  }
  void withdraw(const JobPtr& job) override {
    JobPtr gone;
    const std::lock_guard lock(mutex);
    for (JobPtr& each : jobs)
      if (each == job) gone = std::exchange(each, nullptr);
  }
  int64_t retry_after_seconds() const override { return 1; }
  bool idle() const override { return jobs.empty(); }
  Status usable() const override { return {}; }

  size_t count() {
    const std::lock_guard lock(mutex);
    return jobs.size();
  }
  void answer(size_t i, Result<Outputs> outputs) { jobs[i]->answer(Answer{std::move(outputs), {}, {}}); }

  std::mutex mutex;  // one test hands a request over from another thread
  std::vector<JobPtr> jobs;
  bool full = false;
};

class CachingTest : public testing::Test {
 protected:
  void SetUp() override {
    registry_metrics_->count_cache(metrics_);
    cache_ = std::make_shared<CachingScheduler>(below_, responses_, 4, host_, registry_metrics_);
  }
  /// What is still held goes, is handed over and refused: all of it before what the answers are written to.
  void TearDown() override {
    below_->full = true;
    below_->jobs.clear();
    std::promise<void> drained;
    host_.pool.submit([&] { drained.set_value(); });
    drained.get_future().wait();
  }
  /// The job, whose answer will be in answers_[i].
  JobPtr ask(float value) {
    const size_t i = answers_.size();
    answers_.emplace_back();
    JobPtr made = job({value});
    made->done = [this, i](Answer answer) { answers_[i] = std::move(answer); };
    return made;
  }

  std::weak_ptr<Job> give_up(JobPtr job) {
    const std::weak_ptr<Job> left = job;
    job->abandoned = true;
    cache_->withdraw(job);
    job = nullptr;
    return left;
  }

  std::unique_ptr<kernels::Backend> backend_ = kernels::make_cpu_backend({.onednn_path = "none"});
  metrics::Registry metrics_;
  Host host_{.backend = *backend_, .metrics = metrics_, .boot = 1, .pool = ComputePool(1)};
  std::shared_ptr<ResponseCache> responses_ = std::make_shared<ResponseCache>(1 << 20);
  std::shared_ptr<HeldScheduler> below_ = std::make_shared<HeldScheduler>();
  std::shared_ptr<ModelMetrics> registry_metrics_ = std::make_shared<ModelMetrics>(metrics_, "m", "1");
  std::shared_ptr<CachingScheduler> cache_;
  std::deque<std::optional<Answer>> answers_;
};

TEST_F(CachingTest, IdenticalRequestsAreComputedOnce) {
  ASSERT_TRUE(cache_->submit(ask(1)));
  ASSERT_TRUE(cache_->submit(ask(1)));
  ASSERT_TRUE(cache_->submit(ask(2)));
  ASSERT_EQ(below_->jobs.size(), 2u);
  below_->answer(0, number(10));
  EXPECT_EQ(number_in(*answers_[0]->outputs), 10);
  EXPECT_EQ(number_in(*answers_[1]->outputs), 10);
  EXPECT_FALSE(answers_[0]->cached);
  EXPECT_TRUE(answers_[1]->cached);
  EXPECT_FALSE(answers_[2]);
  ASSERT_TRUE(cache_->submit(ask(1)));
  EXPECT_EQ(number_in(*answers_[3]->outputs), 10) << "at once";
  EXPECT_EQ(registry_metrics_->cache_hits->value(), 2u);
  EXPECT_EQ(registry_metrics_->cache_misses->value(), 2u) << "what was computed";
}

TEST_F(CachingTest, WhereTheOneThatComputesFailsTheNextComputes) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(cache_->submit(ask(1)));
  below_->answer(0, Error{Code::kInternal, "broken"});
  EXPECT_FALSE(answers_[0]->outputs);
  ASSERT_TRUE(eventually([&] { return below_->count() == 2; }));
  below_->answer(1, number(10));
  EXPECT_EQ(number_in(*answers_[1]->outputs), 10);
  EXPECT_EQ(number_in(*answers_[2]->outputs), 10);
}

TEST_F(CachingTest, WhoIsAnsweredFromTheCacheMayAskItAgain) {
  ASSERT_TRUE(cache_->submit(ask(1)));
  below_->answer(0, number(10));
  const JobPtr again = ask(1), first = job({1});
  first->done = [&](const Answer&) { ASSERT_TRUE(cache_->submit(again)); };
  ASSERT_TRUE(cache_->submit(first));
  EXPECT_EQ(number_in(*answers_[1]->outputs), 10);
}

TEST_F(CachingTest, WhatIsKeptHoldsNothingOfTheRequest) {
  JobPtr request = ask(1);
  const auto held = std::make_shared<int>();
  request->holds = held;
  request->parent = job({1});
  ASSERT_TRUE(cache_->submit(request));
  below_->answer(0, number(10));
  below_->jobs.clear();
  request.reset();
  EXPECT_EQ(held.use_count(), 1);
  ASSERT_TRUE(cache_->submit(ask(1)));
  EXPECT_EQ(number_in(*answers_[1]->outputs), 10);
}

TEST_F(CachingTest, WhereTheOneThatComputesIsGivenUpTheNextWhoIsStillThereComputes) {
  JobPtr first = ask(1), gone = ask(1);
  ASSERT_TRUE(cache_->submit(first));
  ASSERT_TRUE(cache_->submit(gone));
  ASSERT_TRUE(cache_->submit(ask(1)));
  EXPECT_TRUE(give_up(std::move(gone)).expired()) << "its inputs are held though another one computes";
  give_up(std::move(first));
  ASSERT_TRUE(eventually([&] { return below_->count() == 2; }));
  below_->answer(1, number(10));
  EXPECT_EQ(number_in(*answers_[2]->outputs), 10);
  EXPECT_FALSE(answers_[1]);
}

TEST_F(CachingTest, WhatIsRefusedBelowIsRefusedAndKeepsNobodyWaiting) {
  below_->full = true;
  const auto refused = cache_->submit(ask(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "full");
  below_->full = false;
  ASSERT_TRUE(cache_->submit(ask(1)));
  EXPECT_EQ(below_->jobs.size(), 1u);
}

TEST_F(CachingTest, OnlySoManyWaitForOneAnswerAndShadowRequestsPassBy) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(cache_->submit(ask(1)));
  EXPECT_EQ(cache_->submit(ask(1)).error().code, Code::kOverloaded);
  const JobPtr withdrawn = ask(1);
  withdrawn->abandoned = true;
  ASSERT_TRUE(cache_->submit(withdrawn));
  EXPECT_EQ(withdrawn.use_count(), 1) << "it waits for nothing";
  const JobPtr shadow = ask(1);
  shadow->shadow = true;
  ASSERT_TRUE(cache_->submit(shadow));
  EXPECT_EQ(below_->jobs.size(), 2u);
}

TEST_F(CachingTest, WhatWasKeptGoesWithTheVersion) {
  ASSERT_TRUE(cache_->submit(ask(1)));
  below_->answer(0, number(10));
  EXPECT_GT(responses_->bytes(), 0u);
  below_->jobs.clear();
  cache_.reset();
  EXPECT_EQ(responses_->bytes(), 0u);
}

}  // namespace
}  // namespace serin::serving
