// recent_requests_test.cc: the mean of the last ten seconds, on a clock of the test.

#include "router/proxy/recent_requests.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace serin::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
const RecentRequests::Time kStart{seconds(5000)};

TEST(RecentRequests, IsTheMeanOfTenWholeSeconds) {
  RecentRequests recent;
  EXPECT_EQ(recent.per_second(kStart), 0);
  for (int i = 0; i < 2000; ++i) recent.count(kStart + milliseconds(10 * i));  // 100 a second for 20 s
  EXPECT_EQ(recent.per_second(kStart + seconds(20)), 100);
  EXPECT_EQ(recent.per_second(kStart + seconds(20)), 100) << "reading changes nothing";
  EXPECT_EQ(recent.per_second(kStart + milliseconds(25'900)), 50) << "the second that has only begun does not count";
  EXPECT_EQ(recent.per_second(kStart + seconds(30)), 0);
}

TEST(RecentRequests, SeesTheFirstOneAtOnce) {
  RecentRequests recent;
  EXPECT_EQ(recent.lately(kStart), 0);
  recent.count(kStart + milliseconds(900));
  EXPECT_EQ(recent.lately(kStart + milliseconds(900)), 1);
  EXPECT_EQ(recent.lately(kStart + milliseconds(10'999)), 1);
  EXPECT_EQ(recent.lately(kStart + seconds(11)), 0);
}

TEST(RecentRequests, ForgetsWhatWasCountedInTheSameBucketLongAgo) {
  RecentRequests recent;
  for (int i = 0; i < 50; ++i) recent.count(kStart);
  recent.count(kStart + seconds(16));  // the same bucket
  EXPECT_EQ(recent.per_second(kStart + seconds(17)), 0.1);
  EXPECT_EQ(recent.per_second(kStart + seconds(1)), 0);
}

TEST(RecentRequests, CountsEveryRequestOfEveryThread) {
  RecentRequests recent;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) recent.count(kStart);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(recent.per_second(kStart + seconds(1)), 4000);
}

}  // namespace
}  // namespace serin::router
