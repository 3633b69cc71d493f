#include "runtime/engine/plan/arena_memory.h"

#include <gmock/gmock.h>

#include <random>

namespace serin::engine {
namespace {

void expect_disjoint(std::span<const Interval> intervals, const Packing& packing) {
  ASSERT_EQ(packing.offsets.size(), intervals.size());
  for (size_t a = 0; a < intervals.size(); ++a) {
    EXPECT_EQ(packing.offsets[a] % kArenaAlignment, 0u);
    EXPECT_LE(packing.offsets[a] + intervals[a].bytes, packing.bytes);
    for (size_t b = 0; b < a; ++b) {
      const bool together = intervals[a].first <= intervals[b].last && intervals[b].first <= intervals[a].last;
      if (!together) continue;
      const bool apart =
          packing.offsets[a] + intervals[a].bytes <= packing.offsets[b] || packing.offsets[b] + intervals[b].bytes <= packing.offsets[a];
      EXPECT_TRUE(apart) << "buffers " << a << " and " << b;
    }
  }
}

TEST(ArenaMemory, NothingNeedsNothing) {
  const Packing packing = pack({});
  EXPECT_EQ(packing.bytes, 0u);
  EXPECT_EQ(live_bytes({}), 0u);
}

TEST(ArenaMemory, BuffersThatNeverMeetShareTheirBytes) {
  const std::vector<Interval> chain = {{640, 0, 1}, {640, 1, 2}, {640, 2, 3}, {640, 3, 4}};
  const Packing packing = pack(chain);
  expect_disjoint(chain, packing);
  EXPECT_EQ(packing.bytes, 1280u);
  EXPECT_EQ(live_bytes(chain), 1280u);
}

TEST(ArenaMemory, OneStepInCommonIsEnoughToKeepApart) {
  const std::vector<Interval> two = {{64, 0, 3}, {64, 3, 5}};
  EXPECT_EQ(pack(two).bytes, 128u);
}

TEST(ArenaMemory, SmallBuffersGoIntoTheGapsOfLargeOnes) {
  // The two large ones never meet; the small one lives through both, beside them.
  const std::vector<Interval> intervals = {{4096, 0, 1}, {64, 0, 5}, {4096, 2, 3}, {2048, 4, 5}};
  const Packing packing = pack(intervals);
  expect_disjoint(intervals, packing);
  EXPECT_EQ(packing.bytes, 4160u);
}

TEST(ArenaMemory, SizesAreRoundedUpToCacheLines) {
  const std::vector<Interval> intervals = {{1, 0, 0}, {65, 0, 0}, {0, 0, 0}};
  const Packing packing = pack(intervals);
  expect_disjoint(intervals, packing);
  EXPECT_EQ(packing.bytes, 192u);
}

TEST(ArenaMemory, OffsetsAreMultiplesOfWhatADeviceWants) {
  const std::vector<Interval> intervals = {{1, 0, 0}, {257, 0, 0}, {64, 0, 1}, {64, 1, 1}};
  const Packing packing = pack(intervals, kDeviceAlignment);
  expect_disjoint(intervals, packing);
  for (const size_t offset : packing.offsets) EXPECT_EQ(offset % 256, 0u);
  EXPECT_EQ(packing.bytes, 1024u);
  EXPECT_EQ(live_bytes(intervals, kDeviceAlignment), 1024u);
}

TEST(ArenaMemory, RandomIntervalsNeverOverlapAndStayNearTheLowerBound) {
  std::mt19937 random(7);
  double worst = 1;
  for (int round = 0; round < 200; ++round) {
    std::vector<Interval> intervals(1 + random() % 120);
    for (Interval& interval : intervals) {
      interval.first = static_cast<int>(random() % 100);
      interval.last = interval.first + static_cast<int>(random() % (random() % 4 == 0 ? 60 : 4));  // most are short, some skip far ahead
      interval.bytes = size_t{1} << random() % 18;
    }
    const Packing packing = pack(intervals);
    expect_disjoint(intervals, packing);
    ASSERT_GE(packing.bytes, live_bytes(intervals));
    worst = std::max(worst, static_cast<double>(packing.bytes) / static_cast<double>(live_bytes(intervals)));
  }
  EXPECT_LT(worst, 1.25);
}

/// A network in four stages, each with images half as large and twice the channels; within a block the channels are widened by four, and the
/// result of a block is read again at the end of the next (a residual).
TEST(ArenaMemory, ANetworkWithResidualsStaysNearTheLowerBound) {
  std::vector<Interval> intervals;
  int step = 0;
  for (size_t stage = 0; stage < 4; ++stage) {
    const size_t bytes = size_t{802816} >> stage;
    for (int block = 0; block < 6; ++block) {
      intervals.push_back({bytes, step, step + 4});          // read by the first layer and by the Add at the end
      intervals.push_back({4 * bytes, step + 1, step + 2});  // widened
      intervals.push_back({4 * bytes, step + 2, step + 3});
      intervals.push_back({bytes, step + 3, step + 4});
      step += 4;
    }
  }
  const Packing packing = pack(intervals);
  expect_disjoint(intervals, packing);
  EXPECT_LE(static_cast<double>(packing.bytes), 1.12 * static_cast<double>(live_bytes(intervals)));
}

}  // namespace
}  // namespace serin::engine
