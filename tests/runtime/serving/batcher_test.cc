// batcher_test.cc: who rides with whom, who is refused, who is dropped. Runs are held back by a gate, so that queues form on purpose.

#include "runtime/serving/scheduling/batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <set>

#include "tests/runtime/base/eventually.h"

namespace serin::serving {
namespace {

using namespace std::chrono_literals;
using serin::test::eventually;
using testing::ElementsAre;

class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void await_waiting(int n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= n; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int waiting_ = 0;
};

QueuePolicies queue(QueuePolicy policy) { return {.levels = {policy}}; }

class BatcherTest : public testing::Test {
 protected:
  void make(Batcher::Options options, int threads = 2, std::chrono::nanoseconds took = 1ms) {
    pool_ = std::make_unique<ComputePool>(threads);
    threads_ = pool_->lease(threads);
    const auto run = [this](size_t instance, std::span<const JobPtr> batch, bool) {
      gate_.pass();
      {
        const std::lock_guard lock(mutex_);
        ran_.push_back(instance);
        batches_.emplace_back();
        for (const JobPtr& job : batch) batches_.back().push_back(job->rows);
      }
      for (const JobPtr& job : batch) job->done(Answer{Outputs{}, {}, {}});
      return true;
    };
    const auto usable = [this](size_t instance) {
      const std::lock_guard lock(mutex_);
      return lost_.contains(instance) ? Status(Error{Code::kUnavailable, "device is lost"}) : Status();
    };
    batcher_ = std::make_shared<Batcher>(options, *pool_, run, usable);
    for (int64_t rows = 1; rows <= options.max_batch; rows *= 2)
      for (int i = 0; i < 2; ++i) batcher_->learn({4}, rows, took);  // a flat curve: every row more is free
  }

  JobPtr job(int64_t rows = 1, int64_t width = 4) {
    auto made = std::make_shared<Job>();
    made->rows = rows;
    made->group = {width};
    made->inputs = {TensorView{DType::kFloat32, {rows, width}, nullptr}};
    made->arrived = Clock::now();
    made->done = [this](Answer answer) {
      const std::lock_guard lock(mutex_);
      if (answer.outputs)
        ++good_;
      else
        bad_.push_back(answer.outputs.error().code);
      answered_.notify_all();
    };
    return made;
  }

  void await_answers(size_t n) {
    std::unique_lock lock(mutex_);
    answered_.wait(lock, [&] { return good_ + bad_.size() >= n; });
  }

  Gate gate_;
  std::mutex mutex_;
  std::condition_variable answered_;
  std::vector<std::vector<int64_t>> batches_;
  std::vector<size_t> ran_;  // the instances that ran them
  std::set<size_t> lost_;
  size_t good_ = 0;
  std::vector<Code> bad_;
  std::shared_ptr<Batcher> batcher_;
  std::unique_ptr<ComputePool> pool_;  // destroyed before what is above: its tasks use all of it
  std::shared_ptr<void> threads_;
};

TEST_F(BatcherTest, AFreeInstanceTakesAtOnceAndABusyOneLetsTheBatchGrow) {
  make({.instances = 1, .max_batch = 8});
  ASSERT_TRUE(batcher_->submit(job()));
  gate_.await_waiting(1);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(batcher_->submit(job()));
  gate_.open();
  await_answers(6);
  EXPECT_THAT(batches_, ElementsAre(ElementsAre(1), ElementsAre(1, 1, 1, 1, 1)));
}

TEST_F(BatcherTest, RowsNeverExceedTheLargestBatch) {
  make({.instances = 1, .max_batch = 8});
  ASSERT_TRUE(batcher_->submit(job()));
  gate_.await_waiting(1);
  for (const int64_t rows : {5, 4, 3, 8, 1}) ASSERT_TRUE(batcher_->submit(job(rows)));
  gate_.open();
  await_answers(6);
  EXPECT_THAT(batches_, ElementsAre(ElementsAre(1), ElementsAre(5, 3), ElementsAre(4, 1), ElementsAre(8)));
}

TEST_F(BatcherTest, OnlyJobsOfOneGroupRideTogether) {
  make({.instances = 1, .max_batch = 8});
  ASSERT_TRUE(batcher_->submit(job()));
  gate_.await_waiting(1);
  ASSERT_TRUE(batcher_->submit(job(1, 4)));
  ASSERT_TRUE(batcher_->submit(job(2, 7)));
  ASSERT_TRUE(batcher_->submit(job(3, 4)));
  gate_.open();
  await_answers(4);
  EXPECT_THAT(batches_, ElementsAre(ElementsAre(1), ElementsAre(1, 3), ElementsAre(2)));
}

TEST_F(BatcherTest, AFullQueueRefuses) {
  make({.instances = 1, .max_batch = 1, .queues = queue({.limit = 2})}, 1);
  ASSERT_TRUE(batcher_->submit(job()));
  gate_.await_waiting(1);
  ASSERT_TRUE(batcher_->submit(job()));
  ASSERT_TRUE(batcher_->submit(job()));
  const auto refused = batcher_->submit(job());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOverloaded);
  EXPECT_GE(batcher_->retry_after_seconds(), 1);
  gate_.open();
  await_answers(3);
}

/// As who waits for a job gives it up. What is left of it afterwards is what others hold.
std::weak_ptr<Job> give_up(Batcher& batcher, JobPtr job) {
  const std::weak_ptr<Job> left = job;
  job->abandoned = true;
  batcher.withdraw(*job);
  job = nullptr;
  return left;
}

TEST_F(BatcherTest, WhatIsWithdrawnIsLetGoOfAtOnceMakesRoomAndIsNeverRun) {
  make({.instances = 1, .max_batch = 1, .queues = queue({.limit = 3})}, 1);
  ASSERT_TRUE(batcher_->submit(job()));
  gate_.await_waiting(1);
  JobPtr first = job(7), second = job(8);
  ASSERT_TRUE(batcher_->submit(first));
  ASSERT_TRUE(batcher_->submit(job(2)));
  ASSERT_TRUE(batcher_->submit(second));
  ASSERT_FALSE(batcher_->submit(job(9)));
  EXPECT_TRUE(give_up(*batcher_, std::move(second)).expired()) << "its inputs are held though the only instance is busy";
  EXPECT_TRUE(give_up(*batcher_, std::move(first)).expired());
  EXPECT_EQ(batcher_->queued(), 1u);
  ASSERT_TRUE(batcher_->submit(job(3)));
  ASSERT_TRUE(batcher_->submit(job(4)));
  gate_.open();
  await_answers(4);
  EXPECT_THAT(batches_, ElementsAre(ElementsAre(1), ElementsAre(2), ElementsAre(3), ElementsAre(4)));
}

TEST_F(BatcherTest, WhatIsWithdrawnBeforeItComesOrWhenItRunsIsNoMistake) {
  make({.instances = 1, .max_batch = 1}, 1);
  const JobPtr running = job(1), early = job(7);
  ASSERT_TRUE(batcher_->submit(running));
  gate_.await_waiting(1);
  EXPECT_FALSE(give_up(*batcher_, running).expired());
  EXPECT_FALSE(give_up(*batcher_, early).expired());
  ASSERT_TRUE(batcher_->submit(early));
  EXPECT_EQ(early.use_count(), 1) << "it is not queued";
  gate_.open();
  await_answers(1);
  EXPECT_THAT(batches_, ElementsAre(ElementsAre(1)));
}

TEST_F(BatcherTest, WhatIsWithdrawnIsNotWaitedWith) {
  make({.instances = 1, .max_batch = 4, .max_queue_delay = 10h}, 1);
  gate_.open();
  JobPtr gone = job(2);
  ASSERT_TRUE(batcher_->submit(gone));
  EXPECT_TRUE(give_up(*batcher_, std::move(gone)).expired());
  EXPECT_TRUE(eventually([&] { return batcher_->idle(); })) << "an instance waits for nothing";
  gone = job(3);
  ASSERT_TRUE(batcher_->submit(gone));
  ASSERT_TRUE(batcher_->submit(job(1)));
  await_answers(2);
  EXPECT_THAT(batches_, ElementsAre(ElementsAre(3, 1)));
}

TEST_F(BatcherTest, ABatchThatFillsUpLosesTheRowsOfWhoIsWithdrawn) {
  make({.instances = 1, .max_batch = 4, .max_queue_delay = 10h}, 1);
  gate_.open();
  ASSERT_TRUE(batcher_->submit(job(1)));
  JobPtr gone = job(2);
  ASSERT_TRUE(batcher_->submit(gone));
  give_up(*batcher_, std::move(gone));
  ASSERT_TRUE(batcher_->submit(job(2)));
  ASSERT_TRUE(batcher_->submit(job(1)));
  await_answers(3);
  EXPECT_THAT(batches_, ElementsAre(ElementsAre(1, 2, 1)));
}

TEST_F(BatcherTest, AnExpiredJobIsAnsweredAndNotRun) {
  make({.instances = 1, .max_batch = 4}, 1);
  ASSERT_TRUE(batcher_->submit(job()));
  gate_.await_waiting(1);
  const JobPtr late = job(3);
  late->deadline = Clock::now() - 1ms;
  ASSERT_TRUE(batcher_->submit(late));
  gate_.open();
  await_answers(2);
  EXPECT_THAT(bad_, ElementsAre(Code::kDeadlineExceeded));
  EXPECT_THAT(batches_, ElementsAre(ElementsAre(1)));
}

TEST_F(BatcherTest, RealRequestsGoBeforeShadowOnes) {
  make({.instances = 1, .max_batch = 1}, 1);
  ASSERT_TRUE(batcher_->submit(job(1)));
  gate_.await_waiting(1);
  const JobPtr shadow = job(2);
  shadow->shadow = true;
  ASSERT_TRUE(batcher_->submit(shadow));
  ASSERT_TRUE(batcher_->submit(job(3)));
  gate_.open();
  await_answers(3);
  EXPECT_THAT(batches_, ElementsAre(ElementsAre(1), ElementsAre(3), ElementsAre(2)));
}

JobPtr with_priority(JobPtr job, uint64_t priority) {
  job->priority = priority;
  return job;
}

TEST_F(BatcherTest, UrgentRequestsGoFirstAndWhoNamesNoPriorityHasTheModelsOwn) {
  make({.instances = 1, .max_batch = 1, .queues = {.levels = std::vector<QueuePolicy>(3), .standard = 2}}, 1);
  ASSERT_TRUE(batcher_->submit(job(1)));
  gate_.await_waiting(1);
  const JobPtr shadow = with_priority(job(2), 1);
  shadow->shadow = true;
  for (const JobPtr& each :
       {shadow, with_priority(job(3), 3), job(4), with_priority(job(5), 1), with_priority(job(6), 99), with_priority(job(7), 1)})
    ASSERT_TRUE(batcher_->submit(each));
  gate_.open();
  await_answers(7);
  EXPECT_THAT(batches_,
              ElementsAre(ElementsAre(1), ElementsAre(5), ElementsAre(7), ElementsAre(4), ElementsAre(6), ElementsAre(3), ElementsAre(2)));
}

TEST_F(BatcherTest, PrioritiesBehindTheLastLevelWaitWithIt) {
  make({.instances = 1, .max_batch = 1, .queues = {.levels = std::vector<QueuePolicy>(2), .standard = 1, .named = UINT64_MAX}}, 1);
  ASSERT_TRUE(batcher_->submit(job(1)));
  gate_.await_waiting(1);
  for (const JobPtr& each : {with_priority(job(2), 99), job(3), with_priority(job(4), UINT64_MAX), with_priority(job(5), 1)})
    ASSERT_TRUE(batcher_->submit(each));
  gate_.open();
  await_answers(5);
  EXPECT_THAT(batches_, ElementsAre(ElementsAre(1), ElementsAre(3), ElementsAre(5), ElementsAre(2), ElementsAre(4)));
}

TEST_F(BatcherTest, ABatchIsLedByTheMostUrgentAndFilledUpWithOthers) {
  make({.instances = 1, .max_batch = 8, .queues = {.levels = std::vector<QueuePolicy>(2), .standard = 2}}, 1);
  ASSERT_TRUE(batcher_->submit(job()));
  gate_.await_waiting(1);
  for (const JobPtr& each : {job(2), with_priority(job(3), 1), job(4), job(1)}) ASSERT_TRUE(batcher_->submit(each));
  gate_.open();
  await_answers(5);
  EXPECT_THAT(batches_, ElementsAre(ElementsAre(1), ElementsAre(3, 2, 1), ElementsAre(4)));
}

TEST_F(BatcherTest, EachPriorityHasALimitOfItsOwn) {
  make({.instances = 1, .max_batch = 1, .queues = {.levels = {{.limit = 1}, {.limit = 2}}, .standard = 2}}, 1);
  ASSERT_TRUE(batcher_->submit(job()));
  gate_.await_waiting(1);
  ASSERT_TRUE(batcher_->submit(job()));
  ASSERT_TRUE(batcher_->submit(job()));
  EXPECT_FALSE(batcher_->submit(job())) << "two are waiting";
  ASSERT_TRUE(batcher_->submit(with_priority(job(), 1))) << "the flood of the others keeps it not out";
  EXPECT_FALSE(batcher_->submit(with_priority(job(), 1)));
  const JobPtr shadow = job();
  shadow->shadow = true;
  EXPECT_TRUE(batcher_->submit(shadow));
  gate_.open();
  await_answers(5);
}

TEST_F(BatcherTest, WhoWaitedTooLongIsRefusedOrGoesBehindTheOthersOfItsPriority) {
  make({.instances = 1, .max_batch = 1, .queues = {.levels = {{.timeout = 1ns, .delay = true}, {.timeout = 1ns}, {}}, .standard = 3}}, 1);
  ASSERT_TRUE(batcher_->submit(job()));
  gate_.await_waiting(1);
  for (const JobPtr& each : {job(2), with_priority(job(3), 1), with_priority(job(4), 2)}) ASSERT_TRUE(batcher_->submit(each));
  gate_.open();
  await_answers(4);
  EXPECT_THAT(bad_, ElementsAre(Code::kDeadlineExceeded));
  EXPECT_THAT(batches_, ElementsAre(ElementsAre(1), ElementsAre(3), ElementsAre(2)));
}

// The times below are in hours, of which a test run takes none: what is compared is what the curve says.

TEST_F(BatcherTest, WithAGoalWhoCannotBeAnsweredInTimeIsRefusedAtOnce) {
  make({.instances = 1, .max_batch = 1, .slo = 25h}, 1, 10h);
  ASSERT_TRUE(batcher_->submit(job()));
  gate_.await_waiting(1);
  ASSERT_TRUE(batcher_->submit(job())) << "runs until 20h";
  const auto refused = batcher_->submit(job());
  ASSERT_FALSE(refused) << "would run until 30h";
  EXPECT_EQ(refused.error().code, Code::kOverloaded);
  EXPECT_NE(refused.error().message.find("1 requests are waiting"), std::string::npos) << refused.error().message;
  gate_.open();
  await_answers(2);
}

TEST_F(BatcherTest, WithAGoalADeadlineThatIsSoonerCounts) {
  make({.instances = 1, .max_batch = 1, .slo = 25h}, 1, 10h);
  const JobPtr hurried = job();
  hurried->deadline = Clock::now() + 9h;
  EXPECT_FALSE(batcher_->submit(hurried));
  gate_.open();
}

TEST_F(BatcherTest, WithAGoalAllPartsOfARequestCountWhereItIsLetIn) {
  make({.instances = 1, .max_batch = 1, .slo = 25h}, 1, 10h);
  const JobPtr first = job();
  first->behind = 2;
  EXPECT_FALSE(batcher_->submit(first)) << "its last part would run until 30h";
  const JobPtr shorter = job();
  shorter->behind = 1;
  ASSERT_TRUE(batcher_->submit(shorter));
  gate_.await_waiting(1);
  ASSERT_TRUE(batcher_->submit(job()));
  EXPECT_FALSE(batcher_->submit(job()));
  const JobPtr part = job();
  part->admitted = true;
  EXPECT_TRUE(batcher_->submit(part)) << "the rest of what was let in already";
  gate_.open();
  await_answers(3);
}

TEST_F(BatcherTest, AFullQueueTakesTheRestOfWhatWasLetIn) {
  make({.instances = 1, .max_batch = 1, .queues = {.levels = {{.limit = 1}}}}, 1);
  ASSERT_TRUE(batcher_->submit(job()));
  gate_.await_waiting(1);
  ASSERT_TRUE(batcher_->submit(job()));
  EXPECT_FALSE(batcher_->submit(job()));
  const JobPtr part = job();
  part->admitted = true;
  EXPECT_TRUE(batcher_->submit(part));
  gate_.open();
  await_answers(3);
}

TEST_F(BatcherTest, WithoutAGoalNobodyIsRefusedForBeingLate) {
  make({.instances = 1, .max_batch = 1}, 1, 10h);
  gate_.open();
  const JobPtr hurried = job();
  hurried->deadline = Clock::now() + 9h;
  EXPECT_TRUE(batcher_->submit(hurried));
  await_answers(1);
}

TEST_F(BatcherTest, WithAGoalABatchIsTheLargestThatMeetsTheEarliestOne) {
  make({.instances = 1, .max_batch = 8, .slo = 100h}, 1);
  for (int i = 0; i < 200; ++i)  // until what was learned first is forgotten
    for (const int64_t rows : {1, 2, 4, 8}) batcher_->learn({4}, rows, std::chrono::hours(2 + 2 * rows));
  ASSERT_TRUE(batcher_->submit(job()));
  gate_.await_waiting(1);
  const JobPtr hurried = job(2);
  hurried->deadline = Clock::now() + 17h;  // a batch of four rows takes 10 h, one of eight 18
  for (const JobPtr& each : {job(), hurried, job(), job()}) ASSERT_TRUE(batcher_->submit(each));
  gate_.open();
  await_answers(5);
  EXPECT_THAT(batches_, ElementsAre(ElementsAre(1), ElementsAre(1, 2, 1), ElementsAre(1)));
}

TEST_F(BatcherTest, WithAQueueDelayAFreeInstanceWaitsUntilTheBatchIsFull) {
  make({.instances = 2, .max_batch = 4, .max_queue_delay = 10h});
  gate_.open();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(batcher_->submit(job()));
  await_answers(4);
  EXPECT_THAT(batches_, ElementsAre(ElementsAre(1, 1, 1, 1)));
  EXPECT_TRUE(eventually([&] { return batcher_->idle(); }));
}

TEST_F(BatcherTest, WithAQueueDelayTheFirstOfABatchGoesWhenItIsOver) {
  make({.instances = 2, .max_batch = 4, .max_queue_delay = 1ms});
  gate_.open();
  ASSERT_TRUE(batcher_->submit(job()));
  await_answers(1);
  EXPECT_EQ(good_, 1u);
}

TEST_F(BatcherTest, WithAQueueDelayADeadlineIsNotWaitedPast) {
  make({.instances = 1, .max_batch = 4, .max_queue_delay = 10h}, 1, 1h);
  gate_.open();
  const JobPtr hurried = job(2);
  hurried->deadline = Clock::now() + 30min;  // before the end of the shortest run: it goes at once
  ASSERT_TRUE(batcher_->submit(job()));
  ASSERT_TRUE(batcher_->submit(hurried));
  await_answers(2);
  EXPECT_THAT(batches_, ElementsAre(ElementsAre(1, 2)));
}

TEST_F(BatcherTest, TakingTurnsUsesAllInstancesAlike) {
  make({.instances = 2, .max_batch = 1, .by_turns = true});
  gate_.open();
  for (size_t i = 1; i <= 6; ++i) {
    ASSERT_TRUE(batcher_->submit(job()));
    await_answers(i);
    while (!batcher_->idle()) std::this_thread::yield();
  }
  EXPECT_THAT(ran_, ElementsAre(0, 1, 0, 1, 0, 1));
}

TEST_F(BatcherTest, F8_AnInstanceThatIsLostLeavesItsWorkToTheOthers) {
  make({.instances = 3, .max_batch = 1, .by_turns = true});
  gate_.open();
  lost_ = {0, 2};
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(batcher_->submit(job()));
  await_answers(6);
  EXPECT_EQ(good_, 6u);
  EXPECT_THAT(ran_, testing::Each(1u));
}

TEST_F(BatcherTest, F8_OnceNoInstanceIsLeftAllAreRefused) {
  make({.instances = 2, .max_batch = 1});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(batcher_->submit(job()));
  gate_.await_waiting(2);
  {
    const std::lock_guard lock(mutex_);
    lost_ = {0, 1};
  }
  gate_.open();
  await_answers(5);
  EXPECT_EQ(good_, 2u) << "what was running";
  EXPECT_THAT(bad_, ElementsAre(Code::kUnavailable, Code::kUnavailable, Code::kUnavailable));
  const auto refused = batcher_->submit(job());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "device is lost");
  EXPECT_TRUE(eventually([&] { return batcher_->idle(); }));
}

TEST_F(BatcherTest, WhatIsQueuedIsRunAfterTheBatcherIsLetGo) {
  make({.instances = 1, .max_batch = 1}, 1);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(batcher_->submit(job()));
  batcher_.reset();
  gate_.open();
  await_answers(3);
  EXPECT_EQ(good_, 3u);
}

TEST_F(BatcherTest, ManyThreadsLoseNothing) {
  make({.instances = 2, .max_batch = 16, .queues = queue({.limit = 100'000})});
  gate_.open();
  std::vector<std::thread> clients;
  for (int t = 0; t < 4; ++t)
    clients.emplace_back([this] {
      for (int i = 0; i < 2'000; ++i) ASSERT_TRUE(batcher_->submit(job()));
    });
  for (auto& client : clients) client.join();
  await_answers(8'000);
  EXPECT_EQ(good_, 8'000u);
}

TEST(ComputePool, ASlowOwnerDoesNotHoldUpAnother) {
  ComputePool pool(1);
  const auto slow = pool.lease(2), fast = pool.lease(1);
  Gate gate;
  for (int i = 0; i < 2; ++i) pool.submit([&] { gate.pass(); });
  gate.await_waiting(2);
  Gate done;
  pool.submit([&] { done.open(); });
  done.pass();  // comes through although both of the slow owner's are still held up
  gate.open();
}

TEST(ComputePool, WorkIsDoneAfterLeasesEnd) {
  std::atomic<int> ran{0};
  {
    ComputePool pool(1);
    for (int round = 0; round < 50; ++round) {
      const auto lease = pool.lease(3);
      for (int i = 0; i < 10; ++i) pool.submit([&] { ++ran; });
    }
  }
  EXPECT_EQ(ran, 500);
}

TEST(ComputePool, GrantedCoresIsAtLeastOne) { EXPECT_GE(granted_cores(), 1); }

}  // namespace
}  // namespace serin::serving
