#include "kernels/mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

namespace serin {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

static_assert(sizeof(Mutex) == sizeof(std::mutex) && sizeof(MutexLock) == sizeof(std::lock_guard<std::mutex>));
static_assert(sizeof(Condition) == sizeof(std::condition_variable));

constexpr milliseconds kLong{60'000};  // of a test that waits in vain

/// What several threads share, as a class of the program has it.
class Count {
 public:
  void add(int much) {
    const MutexLock lock(mutex_);
    count_ += much;
    changed_.notify_all();
  }
  int now() {
    const MutexLock lock(mutex_);
    return count_;
  }
  int wait_for(int least) {
    const MutexLock lock(mutex_);
    changed_.wait(mutex_, [this, least]() SERIN_REQUIRES(mutex_) { return count_ >= least; });
    return count_;
  }
  bool reaches(int least, milliseconds within) {
    const MutexLock lock(mutex_);
    const auto enough = [this, least]() SERIN_REQUIRES(mutex_) { return count_ >= least; };
    const bool reached = changed_.wait_for(mutex_, within, enough);
    EXPECT_EQ(changed_.wait_until(mutex_, steady_clock::now() + within, enough), reached);
    return reached;
  }
  /// Both without a predicate, which spurious wakeups repeat.
  int wait_for_any() {
    const MutexLock lock(mutex_);
    while (count_ == 0) changed_.wait(mutex_);
    return count_;
  }
  void let_time_pass() {
    const MutexLock lock(mutex_);
    while (changed_.wait_until(mutex_, steady_clock::now()) != std::cv_status::timeout) continue;
  }
  /// Calls `work` without the lock, and returns the count with it.
  template <class Work>
  int around(const Work& work) {
    const MutexLock lock(mutex_);
    try {
      const MutexUnlock unlocked(mutex_);
      work();
    } catch (const std::runtime_error&) {
      count_ += 100;
    }
    return count_;
  }
  int wait_for_stop(const std::stop_token& stop) {
    const MutexLock lock(mutex_);
    stopped_.wait(mutex_, stop, [] { return false; });
    return count_;
  }

 private:
  Mutex mutex_;
  Condition changed_;
  std::condition_variable_any stopped_;
  int count_ SERIN_GUARDED_BY(mutex_) = 0;
};

TEST(Mutex, OneThreadAtATimeHoldsIt) {
  Count count;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&count] {
        for (int k = 0; k < 10'000; ++k) count.add(1);
      });
    }
  }
  EXPECT_EQ(count.now(), 40'000);
}

TEST(Mutex, AConditionWaitsForWhatAnotherThreadDoes) {
  Count count;
  const std::jthread thread([&count] {
    for (int k = 0; k < 3; ++k) count.add(1);
  });
  EXPECT_GE(count.wait_for_any(), 1);
  EXPECT_EQ(count.wait_for(3), 3);
  EXPECT_TRUE(count.reaches(3, kLong));
}

TEST(Mutex, AWaitEndsWithItsTime) {
  Count count;
  EXPECT_FALSE(count.reaches(1, milliseconds(1)));
  count.let_time_pass();
  count.add(1);  // and the lock is free again
  EXPECT_TRUE(count.reaches(1, milliseconds(0)));
}

TEST(Mutex, AnotherThreadHasItWhileItIsGivenBack) {
  Count count;
  EXPECT_EQ(count.around([&count] { std::thread([&count] { count.add(1); }).join(); }), 1);
  EXPECT_EQ(count.now(), 1);
}

TEST(Mutex, AfterAnExceptionItIsHeldAgain) {
  Count count;
  const auto fails = [] { throw std::runtime_error("no"); };
  EXPECT_EQ(count.around(fails), 100);
  EXPECT_EQ(count.around(fails), 200);
}

TEST(Mutex, AStopTokenEndsAWait) {
  Count count;
  int at_the_end = 0;
  std::jthread thread([&](const std::stop_token& stop) { at_the_end = count.wait_for_stop(stop); });
  count.add(7);
  thread.request_stop();
  thread.join();
  EXPECT_EQ(at_the_end, 7);
}

}  // namespace
}  // namespace serin
