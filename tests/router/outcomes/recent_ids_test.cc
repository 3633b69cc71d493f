#include "router/outcomes/recent_ids.h"

#include <gtest/gtest.h>

#include <map>

namespace serin::router {
namespace {

constexpr uint64_t kAll = RecentIds::kChunk * RecentIds::kChunks;

using Added = RecentIds::Added;

TEST(RecentIds, KnowTheLatestMillion) {
  RecentIds ids;
  for (uint64_t id = 1; id <= kAll + 10; ++id) ASSERT_EQ(ids.add(2 * id), Added::kNew);
  for (uint64_t id = 11; id <= kAll + 10; ++id) ASSERT_EQ(ids.add(2 * id), Added::kKnown);
  EXPECT_EQ(ids.add(2 * 10), Added::kNew) << "the oldest ones are forgotten";
  EXPECT_EQ(ids.add(2 * 11), Added::kNew) << "and it took the place of this one";
  EXPECT_EQ(ids.total(), kAll + 12);
}

TEST(RecentIds, OfUsersAreNeverForgotten) {
  RecentIds ids;
  EXPECT_EQ(ids.add(RecentIds::of_request(8)), Added::kNew);
  EXPECT_EQ(ids.add(RecentIds::of_user(8)), Added::kNew);
  for (uint64_t id = 10; ids.total() < kAll; id += 2) ASSERT_EQ(ids.add(id), Added::kNew);
  EXPECT_EQ(ids.add(2), Added::kNew) << "in the place of a request";
  EXPECT_EQ(ids.add(4), Added::kNoRoom);
  EXPECT_EQ(ids.add(RecentIds::of_user(8)), Added::kKnown);
}

TEST(RecentIds, AreReadBackFromTheirChunks) {
  for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{999}, uint64_t{1000}, uint64_t{2500}, kAll + 1500}) {
    RecentIds ids, again;
    std::map<uint64_t, std::string> file;
    for (uint64_t id = 1; id <= count; ++id) {
      ids.add(id * 7918);
      if (id % RecentIds::kChunk == 0) file[RecentIds::slot_of(id / RecentIds::kChunk - 1)] = ids.chunk(id / RecentIds::kChunk - 1);
    }
    again.restore(ids.total());
    for (uint64_t chunk = again.first_chunk(); chunk < again.full_chunks(); ++chunk)
      ASSERT_TRUE(again.restore_chunk(chunk, file[RecentIds::slot_of(chunk)])) << chunk;
    ASSERT_TRUE(again.restore_chunk(again.full_chunks(), ids.chunk(ids.full_chunks())));
    const uint64_t first = again.first_chunk() * RecentIds::kChunk;
    for (uint64_t id = first + 1; id <= count; ++id) ASSERT_EQ(again.add(id * 7918), Added::kKnown) << id << " of " << count;
    EXPECT_EQ(again.add(4), Added::kNew);
    EXPECT_EQ(again.total(), count + 1);
  }
}

TEST(RecentIds, RefuseADamagedChunk) {
  RecentIds ids;
  ids.restore(1500);
  EXPECT_FALSE(ids.restore_chunk(0, "12"));
  EXPECT_FALSE(ids.restore_chunk(0, std::string(16 * RecentIds::kChunk, 'x')));
  EXPECT_FALSE(ids.restore_chunk(2, ""));
  EXPECT_FALSE(ids.restore_chunk(1, std::string(size_t{16} * 501, '0')));
}

}  // namespace
}  // namespace serin::router
