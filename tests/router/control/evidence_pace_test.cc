#include "router/control/evidence_pace.h"

#include <gtest/gtest.h>

namespace serin::router {
namespace {

using namespace std::chrono_literals;

/// A guard that needs 10 bits to trip, and has these after 0 s and 5 s.
std::optional<NextTrip> foreseen(double first, double second, bool dry_run = false) {
  EvidencePace pace;
  pace.add({{.guard = "err", .bits = first, .bits_to_trip = 10, .dry_run = dry_run}}, rollout::Time(0s));
  pace.add({{.guard = "err", .bits = second, .bits_to_trip = 10, .dry_run = dry_run}}, rollout::Time(5s));
  return pace.next();
}

TEST(EvidencePace, ForeseesATripAtThePaceOfTheLastSeconds) {
  const auto next = foreseen(4, 5);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->guard, "err");
  EXPECT_DOUBLE_EQ(next->seconds, 25);
  EXPECT_DOUBLE_EQ(foreseen(1, 12)->seconds, 0);
}

TEST(EvidencePace, ForeseesNothingWithoutGrowth) {
  EXPECT_FALSE(foreseen(5, 5));
  EXPECT_FALSE(foreseen(-3, -1)) << "the evidence is for the canary";
  EXPECT_FALSE(foreseen(4, 5, /*dry_run=*/true));
}

TEST(EvidencePace, IsSilentAboutWhatHealthyCanariesReach) {
  EXPECT_FALSE(foreseen(0, 2.9));
  EXPECT_TRUE(foreseen(0, 3.1));
}

TEST(EvidencePace, ForeseesNothingBeyondADay) {
  EXPECT_TRUE(foreseen(4, 4.001));
  EXPECT_FALSE(foreseen(4, 4 + 1e-12));
}

TEST(EvidencePace, NamesTheGuardThatTripsFirst) {
  EvidencePace pace;
  for (const int at : {0, 5})
    pace.add({{.guard = "slow", .bits = 1.0 + at, .bits_to_trip = 10}, {.guard = "fast", .bits = 1.0 + 1.5 * at, .bits_to_trip = 10}},
             rollout::Time(std::chrono::seconds(at)));
  EXPECT_EQ(pace.next()->guard, "fast");
}

}  // namespace
}  // namespace serin::router
