// Blocks survive a crash at any byte, belong to one run, and are found by other shards.

#include "runtime/cli/offline/block_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/cli/offline/block_run.h"

namespace serin::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class BlockStoreTest : public ::testing::Test {
 protected:
  BlockStoreTest() : folder_((fs::path(::testing::TempDir()) / ("blocks_" + std::to_string(::getpid()))).string()) {
    fs::remove_all(folder_);
  }
  ~BlockStoreTest() override { fs::remove_all(folder_); }
  std::unique_ptr<BlockStore> open(const Shard& shard = {}) { return BlockStore::open(folder_, "a run", shard).value(); }
  std::string file(const Shard& shard = {}) const {
    return folder_ + "/" + std::to_string(shard.number) + "-of-" + std::to_string(shard.count) + ".blocks";
  }

  std::string folder_;
};

TEST_F(BlockStoreTest, KeepsWhatWasWholeAtAnyCut) {
  {
    const auto store = open();
    ASSERT_TRUE(store->append(0, "first"));
    ASSERT_TRUE(store->append(4, std::string(1000, 'x')));
  }
  const auto size = fs::file_size(file());
  const auto first_end = size - 1000 - 20;
  const fs::path copy = folder_ + ".copy";
  fs::copy_file(file(), copy, fs::copy_options::overwrite_existing);
  for (uintmax_t kept = 0; kept <= size; kept += kept < 60 ? 1 : 97) {
    fs::copy_file(copy, file(), fs::copy_options::overwrite_existing);
    fs::resize_file(file(), kept);
    const auto store = open();
    EXPECT_EQ(store->has(0), kept >= first_end) << kept;
    EXPECT_FALSE(store->has(4) && kept < size);
    ASSERT_TRUE(store->append(4, "again"));  // where the cut was
    EXPECT_EQ(*store->read(4), kept == size ? std::string(1000, 'x') : "again");
    if (!store->has(0)) continue;
    EXPECT_EQ(*store->read(0), "first");
  }
  fs::remove(copy);
}

TEST_F(BlockStoreTest, DropsABlockWithAWrongByte) {
  ASSERT_TRUE(open()->append(3, "payload"));
  std::fstream(file(), std::ios::in | std::ios::out | std::ios::binary).seekp(-2, std::ios::end).put('?');
  EXPECT_FALSE(open()->has(3));
}

TEST_F(BlockStoreTest, RefusesAnotherRunAndASecondProcess) {
  const auto store = open();
  EXPECT_THAT(BlockStore::open(folder_, "a run", {}).error().message, HasSubstr("another process is computing this shard"));
  EXPECT_THAT(BlockStore::open(folder_, "b run", {2, 2}).error().message, HasSubstr("belongs to another run"));
}

TEST_F(BlockStoreTest, ShardsFindEachOthersBlocks) {
  const auto one = open({1, 2}), two = open({2, 2});
  ASSERT_TRUE(one->append(0, "zero"));
  ASSERT_TRUE(two->append(1, "one"));
  ASSERT_TRUE(one->look_again());
  EXPECT_EQ(one->count(), 2U);
  EXPECT_EQ(*one->read(1), "one");
  ASSERT_TRUE(two->append(2, "two"));
  ASSERT_TRUE(one->look_again());
  EXPECT_EQ(*one->read(2), "two");
}

TEST_F(BlockStoreTest, OneOfSeveralCompletes) {
  const auto one = open({1, 2}), two = open({2, 2});
  const auto work = [] { return Status(); };
  EXPECT_TRUE(*one->complete(work));
  EXPECT_FALSE(fs::exists(folder_));
  EXPECT_FALSE(*two->complete(work));
  const auto again = open();
  EXPECT_EQ(again->complete([] { return Status(Error{Code::kIo, "no space"}); }).error().message, "no space");
  EXPECT_TRUE(fs::exists(folder_));  // nothing is lost
}

TEST(Shard, PartsAreWholeAndDisjoint) {
  for (const int64_t blocks : {0, 1, 7, 100, 1001})
    for (const int64_t count : {1, 2, 3, 8, 150}) {
      int64_t next = 0;
      for (int64_t number = 1; number <= count; ++number) {
        EXPECT_EQ((Shard{number, count}.first(blocks)), next);
        next = Shard{number, count}.last(blocks);
      }
      EXPECT_EQ(next, blocks);
    }
  EXPECT_EQ(parse_shard("2/8")->number, 2);
  for (const char* text : {"", "1", "0/2", "3/2", "1/0", "a/b", "1/2/3", "-1/2", "1/", "1/99999999"})
    EXPECT_FALSE(parse_shard(text)) << text;
}

TEST_F(BlockStoreTest, TheErrorOfTheFirstBlockCounts) {
  const auto store = open();
  const BlockRun run{.rows = 95, .rows_in_block = 10, .shard = {}, .threads = 4, .progress = false};
  const auto worker = [] {
    return [](int64_t first, int64_t count) -> Result<std::string> {
      if (first >= 30) return Error{Code::kInvalidArgument, "row " + std::to_string(first)};
      return std::to_string(count);
    };
  };
  EXPECT_EQ(compute_blocks(run, *store, worker).error().message, "row 30");
  EXPECT_EQ(store->count(), 3U);  // and are not computed again
  const auto rest = [] {
    return [](int64_t first, int64_t count) -> Result<std::string> {
      EXPECT_GE(first, 30);
      return std::to_string(count);
    };
  };
  ASSERT_TRUE(compute_blocks(run, *store, rest));
  EXPECT_EQ(*store->read(9), "5");
}

TEST(Progress, SaysHowFarAndHowLong) {
  EXPECT_EQ(progress_line(0, 100, 0, 0), "  0 %  [                              ]  0 of 100 rows");
  EXPECT_THAT(progress_line(50, 100, 50, 10), HasSubstr(" 50 %  [===============               ]  50 of 100 rows  5 rows/s  10 s left"));
  EXPECT_THAT(progress_line(50, 100'000, 10, 1), HasSubstr("2 h 46 min left"));
}

}  // namespace
}  // namespace serin::cli
