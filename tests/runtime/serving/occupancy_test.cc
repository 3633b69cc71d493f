// occupancy_test.cc: the gauges by which replicas are counted, on a clock of the test.

#include "runtime/serving/host/occupancy.h"

#include <gtest/gtest.h>

namespace serin::serving {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Time = Occupancy::Time;

const Time kStart{seconds(1000)};

TEST(Occupancy, IsIdleBeforeTheFirstRun) {
  Occupancy occupancy;
  EXPECT_EQ(occupancy.busy_share(kStart), 0);
  EXPECT_EQ(occupancy.wait_of(5).count(), 0);
}

TEST(Occupancy, TheBusyShareFollowsARunAndForgetsIt) {
  Occupancy occupancy;
  occupancy.set_instances(2);
  occupancy.begin(kStart);
  EXPECT_NEAR(occupancy.busy_share(kStart + seconds(10)), 0.5 * 0.632, 0.001);
  EXPECT_NEAR(occupancy.busy_share(kStart + seconds(100)), 0.5, 0.001);
  occupancy.begin(kStart + seconds(100));
  EXPECT_NEAR(occupancy.busy_share(kStart + seconds(200)), 1, 0.001);
  occupancy.end(kStart + seconds(200), 1, seconds(200));
  occupancy.end(kStart + seconds(200), 1, seconds(100));
  EXPECT_NEAR(occupancy.busy_share(kStart + seconds(210)), 0.368, 0.001);
  EXPECT_NEAR(occupancy.busy_share(kStart + seconds(300)), 0, 0.001);
}

TEST(Occupancy, TheBusyShareIsThatOfTimeHoweverOftenItIsRead) {
  Occupancy occupancy;
  Time now = kStart;
  for (int run = 0; run < 1000; ++run) {  // 30 of each 100 ms
    occupancy.begin(now);
    EXPECT_LE(occupancy.busy_share(now + milliseconds(10)), 1);
    occupancy.end(now + milliseconds(30), 1, milliseconds(30));
    now += milliseconds(100);
  }
  EXPECT_NEAR(occupancy.busy_share(now), 0.3, 0.01);
}

TEST(Occupancy, AnEarlierTimeOfAnotherThreadChangesNothing) {
  Occupancy occupancy;
  occupancy.begin(kStart);
  const double then = occupancy.busy_share(kStart + seconds(5));
  occupancy.begin(kStart + seconds(5));
  occupancy.end(kStart + seconds(4), 1, seconds(4));
  EXPECT_NEAR(occupancy.busy_share(kStart + seconds(5)), then, 0.001);
}

TEST(Occupancy, TheWaitIsThatOfTheRequestsBeforeTheInstances) {
  Occupancy occupancy;
  occupancy.begin(kStart);
  occupancy.end(kStart + milliseconds(80), 4, milliseconds(80));  // 20 ms each
  EXPECT_NEAR(occupancy.wait_of(5).count(), 0.1, 1e-9);
  occupancy.set_instances(2);
  EXPECT_NEAR(occupancy.wait_of(5).count(), 0.05, 1e-9);
  EXPECT_EQ(occupancy.wait_of(0).count(), 0);
  for (int run = 0; run < 50; ++run) {  // slower by now
    occupancy.begin(kStart + seconds(1));
    occupancy.end(kStart + seconds(1), 1, milliseconds(100));
  }
  EXPECT_NEAR(occupancy.wait_of(5).count(), 0.25, 0.001);
}

}  // namespace
}  // namespace serin::serving
