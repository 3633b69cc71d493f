// Workers: every task runs exactly once, on a worker whose index is in range, and the pool may sleep between jobs.

#include "kernels/cpu/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

namespace serin::kernels {
namespace {

TEST(Parallel, RunsEveryTaskOnce) {
  Workers workers(3);
  Stream stream;
  stream.workers = &workers;
  for (int64_t tasks : {0, 1, 2, 3, 100, 1000}) {
    std::vector<int> runs(static_cast<size_t>(tasks), 0);
    std::vector<int> used(3, 0);
    parallel_for(stream, tasks, [&](int64_t task, int worker) {
      ++runs[static_cast<size_t>(task)];
      ++used.at(static_cast<size_t>(worker));
    });
    EXPECT_EQ(std::count(runs.begin(), runs.end(), 1), tasks);
    EXPECT_EQ(std::accumulate(used.begin(), used.end(), 0), tasks);
  }
}

TEST(Parallel, ManySmallJobsFollowEachOther) {
  Workers workers(2);
  Stream stream;
  stream.workers = &workers;
  std::vector<int64_t> sums(8, 0);
  for (int job = 0; job < 20'000; ++job) {
    parallel_for(stream, 8, [&](int64_t task, int) { sums[static_cast<size_t>(task)] += job; });
  }
  for (const int64_t sum : sums) EXPECT_EQ(sum, int64_t{20'000} * 19'999 / 2);
}

TEST(Parallel, WakesWorkersThatSleep) {
  Workers workers(2);
  Stream stream;
  stream.workers = &workers;
  for (int job = 0; job < 5; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> done = 0;
    parallel_for(stream, 16, [&](int64_t, int) { ++done; });
    EXPECT_EQ(done, 16);
  }
}

TEST(Parallel, WithoutWorkersTasksRunHereInOrder) {
  std::vector<int64_t> order;
  parallel_for(Stream{}, 5, [&](int64_t task, int worker) {
    order.push_back(task);
    EXPECT_EQ(worker, 0);
  });
  EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace serin::kernels
