// S1 at each call to the disk: it is full, or cannot confirm a write. A change is then there as a whole or not at all, what was confirmed
// before stays, and no file is taken for damaged because a disk was full.

#include <gmock/gmock.h>

#include <filesystem>

#include "router/store/history_chain.h"
#include "router/store/sqlite_store.h"
#include "tests/router/store/failing_vfs.h"
#include "tests/router/store/test_folder.h"

namespace serin::store {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Call = FailingVfs::Call;

Change change(uint64_t epoch) {
  RolloutRecord rollout{.spec = std::string(10'000, '#')};  // more than a page
  rollout.report.state = {.id = "digits-1", .service = "digits", .stable = "1", .canary = "2", .epoch = epoch};
  return {.record = {.service = "digits", .stable = "1", .epoch = epoch, .rollout = rollout},
          .history = {{.service = "digits", .event = "weight", .detail = std::to_string(epoch)}}};
}

std::unique_ptr<Store> open(const std::string& path) {
  auto opened = open_sqlite_store(path);
  EXPECT_TRUE(opened) << opened.error().message;
  if (!opened) return nullptr;
  EXPECT_THAT(opened->damage, IsEmpty()) << "a disk that failed is no damage";
  return std::move(opened->store);
}

/// The store as the next process finds it: one of these epochs, and as many entries.
void expect_whole(const std::string& path, uint64_t least, uint64_t most) {
  const auto store = open(path);
  ASSERT_NE(store, nullptr);
  const auto services = store->load();
  ASSERT_TRUE(services && services->size() == 1);
  const uint64_t epoch = services->front().epoch;
  EXPECT_GE(epoch, least);
  EXPECT_LE(epoch, most);
  EXPECT_EQ(services->front().rollout->report.state.epoch, epoch);
  const auto history = *store->history("digits", 10);
  EXPECT_THAT(history, SizeIs(epoch));
  EXPECT_FALSE(find_break(history));
}

/// A second change is saved on a disk that fails after 0, 1, 2 ... good calls, until there are enough of them. `then` is told what became of each
/// attempt, and ends with the store closed. Returns how many failed.
template <class Then>
int save_at_every_failure(Call call, int error, Then&& then) {
  for (int good = 0;; ++good) {
    const TestFolder folder;
    const std::string path = folder.file("router.db");
    FailingVfs disk;
    auto store = open(path);
    EXPECT_TRUE(store->save(change(1)));
    disk.fail_after(call, good, error);
    const Status saved = store->save(change(2));
    if (saved) return good;
    EXPECT_EQ(saved.error().code, Code::kIo);
    then(std::move(store), path, disk, saved.error().message);
  }
}

TEST(Disk, S1FullAtAnyWriteLosesNothingAndIsOverOnceThereIsRoom) {
  const int failed = save_at_every_failure(
      Call::kWrite, SQLITE_FULL, [](std::unique_ptr<Store> store, const std::string& path, FailingVfs& disk, const std::string& said) {
        EXPECT_THAT(said, HasSubstr("full"));
        EXPECT_EQ(store->load()->front().epoch, 1U) << "what was saved is still read";
        disk.heal();
        ASSERT_TRUE(store->save(change(2)));
        store.reset();
        expect_whole(path, 2, 2);
      });
  EXPECT_GT(failed, 5) << "a change is several pages";
}

TEST(Disk, S1FullAtAnyWriteOfAStartIsAnErrorAndTheFileStays) {
  const TestFolder folder;
  const std::string path = folder.file("router.db");
  ASSERT_TRUE(open(path)->save(change(1)));
  int failed = 0;
  for (const Call call : {Call::kOpen, Call::kWrite, Call::kSync, Call::kTruncate}) {
    for (int good = 0;; ++good) {
      FailingVfs disk;
      disk.fail_after(call, good, call == Call::kOpen ? SQLITE_CANTOPEN : SQLITE_FULL);
      const auto opened = open_sqlite_store(path);
      if (opened)
        EXPECT_THAT(opened->damage, IsEmpty());
      else
        EXPECT_THAT(opened.error().message, HasSubstr(path));
      failed += !opened;
      if (disk.calls(call) <= good) break;
    }
  }
  EXPECT_GT(failed, 0);
  expect_whole(path, 1, 1);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "nothing was set aside";
}

TEST(Disk, S1ASyncThatFailsIsTheLastThingThatIsAsked) {
  const int failed =
      save_at_every_failure(Call::kSync, SQLITE_IOERR_FSYNC,
                            [](std::unique_ptr<Store> store, const std::string& path, FailingVfs& disk, const std::string& said) {
                              EXPECT_THAT(said, HasSubstr("restart"));
                              disk.heal();
                              const Status again = store->save(change(2));
                              ASSERT_FALSE(again) << "a disk that says yes the second time has lost the pages of the first";
                              EXPECT_EQ(disk.calls(Call::kSync) + disk.calls(Call::kWrite), 0) << "it is not asked at all";
                              store.reset();
                              expect_whole(path, 1, 2);
                            });
  EXPECT_GT(failed, 0);
}

}  // namespace
}  // namespace serin::store
