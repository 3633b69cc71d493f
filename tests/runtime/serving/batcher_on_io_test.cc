// batcher_on_io_test.cc: which batches run on the io thread that read their requests, and which go to compute threads. The loops are real ones.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "runtime/net/loop.h"
#include "runtime/serving/scheduling/batcher.h"
#include "tests/runtime/base/eventually.h"

namespace serin::serving {
namespace {

using namespace std::chrono_literals;
using serin::test::eventually;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;

constexpr size_t kCompute = static_cast<size_t>(-1);

struct Ran {
  size_t thread;  // index of the io thread, or kCompute
  std::vector<int64_t> rows;
};

class BatcherOnIoTest : public testing::Test {
 protected:
  /// Every batch that is run takes `takes_`, by the clock of the curve. What is `known` has taken as long before.
  void make(Batcher::Options options, std::vector<int64_t> known, std::chrono::nanoseconds takes) {
    takes_ = takes;
    threads_ = pool_.lease(static_cast<int>(options.instances));
    options.on_io_threads = true;
    batcher_ =
        std::make_shared<Batcher>(options, pool_, [this](size_t, std::span<const JobPtr> batch, bool on_io) { return run(batch, on_io); });
    for (const int64_t rows : known)
      for (int i = 0; i < 2; ++i) batcher_->learn({}, rows, takes);
  }

  bool run(std::span<const JobPtr> batch, bool on_io) {
    EXPECT_EQ(on_io, this_thread() != kCompute);
    if (on_io && !ready_) return false;
    Ran ran{this_thread(), {}};
    int64_t together = 0;
    for (const JobPtr& job : batch) {
      ran.rows.push_back(job->rows);
      together += job->rows;
    }
    batcher_->learn({}, together, takes_);
    {
      const std::lock_guard lock(mutex_);
      ran_.push_back(std::move(ran));
    }
    for (const JobPtr& job : batch) job->answer({});
    return true;
  }

  size_t this_thread() {
    const net::Loop* here = loops_.here();
    return here ? here->index() : kCompute;
  }

  JobPtr job(int64_t rows = 1) {
    auto made = std::make_shared<Job>();
    made->rows = rows;
    made->loop = &loops_.loop(0);
    made->arrived = Clock::now();
    made->done = [this](const Answer&) {
      const std::lock_guard lock(mutex_);
      ++answered_;
      changed_.notify_all();
    };
    return made;
  }

  /// As one turn of an io thread would read them.
  void submit_in_one_turn(const std::vector<JobPtr>& jobs, size_t loop = 0) {
    loops_.post_and_wait(loop, [&] {
      for (const JobPtr& each : jobs) EXPECT_TRUE(batcher_->submit(each));
    });
  }

  void await_answers(size_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return answered_ >= n; });
  }

  /// A request after the other, each waited for: where the last of them ran.
  size_t thread_after(int requests) {
    for (int i = 0; i < requests; ++i) {
      const size_t before = answered_;
      submit_in_one_turn({job()});
      await_answers(before + 1);
      EXPECT_TRUE(eventually([&] { return batcher_->idle(); }));
    }
    return ran_.back().thread;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Ran> ran_;
  size_t answered_ = 0;
  std::atomic<std::chrono::nanoseconds> takes_{};
  std::atomic<bool> ready_ = true;
  std::shared_ptr<Batcher> batcher_;
  ComputePool pool_{1};  // both are ended before what is above: their work uses all of it
  std::shared_ptr<void> threads_;
  net::Loops loops_{2};
};

TEST_F(BatcherOnIoTest, WhatATurnHasReadIsOneBatchWhereItWasRead) {
  make({.instances = 3, .max_batch = 8}, {1, 2, 4, 8}, 5us);
  submit_in_one_turn({job(1), job(2), job(3)}, 1);
  await_answers(3);
  EXPECT_THAT(ran_, ElementsAre(testing::AllOf(Field(&Ran::thread, 1u), Field(&Ran::rows, ElementsAre(1, 2, 3)))));
}

TEST_F(BatcherOnIoTest, WhatOtherThreadsAskForIsComputedOnComputeThreads) {
  make({.instances = 1, .max_batch = 8}, {1, 2, 4, 8}, 5us);
  ASSERT_TRUE(batcher_->submit(job()));
  await_answers(1);
  EXPECT_EQ(ran_.at(0).thread, kCompute);
}

TEST_F(BatcherOnIoTest, LongBatchesAreComputedOnComputeThreads) {
  make({.instances = 1, .max_batch = 8}, {1, 2, 4, 8}, 50us);
  EXPECT_EQ(thread_after(1), kCompute);
}

TEST_F(BatcherOnIoTest, SizesThatWereNotSeenYetAreTriedOnComputeThreads) {
  make({.instances = 1, .max_batch = 8}, {1}, 5us);
  submit_in_one_turn({job(), job()});
  await_answers(2);
  EXPECT_EQ(ran_.at(0).thread, kCompute);
  ASSERT_TRUE(eventually([&] { return batcher_->idle(); }));
  EXPECT_EQ(thread_after(1), 0u);
}

TEST_F(BatcherOnIoTest, AModelThatGetsSlowerLeavesAtOnceAndIsBackOnceItHasBeenFastForAWhile) {
  make({.instances = 1, .max_batch = 1}, {1}, 5us);
  EXPECT_EQ(thread_after(1), 0u);
  takes_ = 500us;
  EXPECT_EQ(thread_after(1), 0u) << "the run that shows it";
  EXPECT_EQ(thread_after(20), kCompute);
  takes_ = 5us;
  EXPECT_EQ(thread_after(20), kCompute);
  EXPECT_EQ(thread_after(60), 0u);
}

TEST_F(BatcherOnIoTest, ARunThatOnlyItsDataCanExplainKeepsTheModelAway) {
  make({.instances = 1, .max_batch = 1}, {1}, 5us);
  batcher_->learn({}, 1, 50ms);
  for (int i = 0; i < 200; ++i) batcher_->learn({}, 1, 5us);
  EXPECT_EQ(thread_after(1), kCompute);
}

TEST_F(BatcherOnIoTest, SizesBeyondThoseThatAreCountedAreComputedOnComputeThreads) {
  make({.instances = 1, .max_batch = 1}, {4'097}, 5us);
  submit_in_one_turn({job(1'000'000)});
  await_answers(1);
  EXPECT_EQ(ran_.at(0).thread, kCompute);
}

TEST_F(BatcherOnIoTest, ATurnThatBringsMoreThanTheQueueTakesIsServed) {
  make({.instances = 1, .max_batch = 1, .queues = {.levels = {{.limit = 8}}}}, {1}, 5us);
  loops_.post_and_wait(0, [&] {
    for (int i = 0; i < 40; ++i) {
      EXPECT_TRUE(batcher_->submit(job()));
      EXPECT_TRUE(eventually([&] { return batcher_->queued() < 5; })) << "half of it, from where on compute threads take what waits";
    }
  });
  await_answers(40);
}

TEST_F(BatcherOnIoTest, AnIoThreadThatReadsOnHoldsNoInstance) {
  make({.instances = 1, .max_batch = 1}, {1}, 5us);
  loops_.post_and_wait(0, [&] {
    ASSERT_TRUE(batcher_->submit(job()));
    loops_.post_and_wait(1, [&] { ASSERT_TRUE(batcher_->submit(job())); });
    await_answers(2);  // all is computed elsewhere, while this one has not come to its end
  });
}

TEST_F(BatcherOnIoTest, WhatHasToBeMadeFirstIsMadeOnAComputeThread) {
  make({.instances = 1, .max_batch = 8}, {1, 2, 4, 8}, 5us);
  ready_ = false;
  submit_in_one_turn({job(1), job(2)});
  await_answers(2);
  EXPECT_THAT(ran_, ElementsAre(testing::AllOf(Field(&Ran::thread, kCompute), Field(&Ran::rows, ElementsAre(1, 2)))));
  EXPECT_TRUE(eventually([&] { return batcher_->idle(); }));
}

TEST_F(BatcherOnIoTest, ATurnHasItsShareAndComputeThreadsHaveTheRest) {
  make({.instances = 3, .max_batch = 1}, {1}, 8us);
  std::vector<JobPtr> jobs(30);
  for (JobPtr& each : jobs) each = job();
  submit_in_one_turn(jobs);
  await_answers(30);
  EXPECT_EQ(std::ranges::count(ran_, 0u, &Ran::thread), 2);
  EXPECT_EQ(std::ranges::count(ran_, kCompute, &Ran::thread), 28);
}

TEST_F(BatcherOnIoTest, WhoHungUpOrCameTooLateIsNotRun) {
  make({.instances = 1, .max_batch = 8}, {1, 2, 4, 8}, 5us);
  const JobPtr gone = job(1), late = job(2);
  gone->abandoned = true;
  late->deadline = Clock::now() - 1ms;
  submit_in_one_turn({gone, late, job(4)});
  await_answers(2);
  EXPECT_THAT(ran_, ElementsAre(Field(&Ran::rows, ElementsAre(4))));
}

TEST_F(BatcherOnIoTest, WhoAsksAgainOutOfAnAnswerIsAnswered) {
  make({.instances = 1, .max_batch = 1}, {1}, 1us);
  int left = 1000;
  std::function<void()> ask = [&] {
    const JobPtr next = job();
    next->done = [&](const Answer&) {
      if (--left > 0) return ask();
      const std::lock_guard lock(mutex_);
      ++answered_;
      changed_.notify_all();
    };
    EXPECT_TRUE(batcher_->submit(next));
  };
  loops_.post(0, [&] { ask(); });
  await_answers(1);
  EXPECT_EQ(ran_.size(), 1000u);
  EXPECT_THAT(ran_, Contains(Field(&Ran::thread, kCompute))) << "one client has no more of a turn than all have together";
}

TEST_F(BatcherOnIoTest, ManyThreadsLoseNothing) {
  make({.instances = 2, .max_batch = 16, .queues = {.levels = {{.limit = 100'000}}}}, {1, 2, 4, 8, 16}, 5us);
  for (int i = 0; i < 2'000; ++i) {
    for (size_t loop = 0; loop < loops_.size(); ++loop)
      loops_.post(loop, [this] {
        for (int each = 0; each < 3; ++each) EXPECT_TRUE(batcher_->submit(job()));
      });
    ASSERT_TRUE(batcher_->submit(job()));
  }
  await_answers(14'000);
  EXPECT_TRUE(eventually([&] { return batcher_->idle(); }));
}

}  // namespace
}  // namespace serin::serving
