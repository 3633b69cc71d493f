// What is saved is loaded; what lies in the store's place and is no store is set aside or refused, by the rules of sqlite_store.h.

#include "router/store/sqlite_store.h"

#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "router/store/history_chain.h"
#include "tests/router/store/test_folder.h"

namespace serin::store {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ServiceRecord example() {
  RolloutRecord rollout{.spec = "kind: Rollout\n", .started_wall_ms = 1'700'000'000'000, .seconds = 12.5};
  rollout.report.state = {.id = "digits-7",
                          .service = "digits",
                          .stable = "1",
                          .canary = "2",
                          .epoch = 7,
                          .phase = rollout::Phase::kRolledBack,
                          .step = 2,
                          .cause = "err",
                          .reason = "err: 7 of 9 'failures'\nwere the canary's"};
  rollout.report.stable_answers = 1000;
  rollout.report.canary_answers = 50;
  rollout.report.evidence = {{.guard = "err", .bits = 12.25, .bits_to_trip = 11.5, .stable_events = 2, .canary_events = 7},
                             {.guard = "lat_p99", .bits = -0.5, .bits_to_trip = 14, .stable_events = 1, .canary_events = 0}};
  return {.service = "digits", .stable = "1", .epoch = 8, .rollout = rollout};
}

HistoryEntry entry(const std::string& detail) {
  return {
      .wall_ms = 5, .service = "digits", .rollout = "digits-7", .event = "weight", .actor = "ann", .detail = detail, .weight_ppm = 50'000};
}

std::unique_ptr<Store> open(const std::string& path) {
  auto opened = open_sqlite_store(path);
  EXPECT_TRUE(opened) << opened.error().message;
  EXPECT_THAT(opened->damage, IsEmpty());
  return std::move(opened->store);
}

void run_sql(const std::string& path, const char* sql) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
  sqlite3_close(database);
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_bytes(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

/// A closed store with one service in it.
std::string stored(const TestFolder& folder) {
  const std::string path = folder.file("router.db");
  EXPECT_TRUE(open(path)->save({.record = example(), .history = {entry("first")}}));
  return path;
}

/// The damaged file is kept beside, and the new store is empty and works.
void expect_set_aside(const std::string& path, const std::string& what) {
  auto opened = open_sqlite_store(path);
  ASSERT_TRUE(opened) << what << ": " << opened.error().message;
  EXPECT_NE(opened->damage, "") << what;
  EXPECT_THAT(opened->set_aside, HasSubstr(path + ".corrupt-")) << what;
  EXPECT_TRUE(std::filesystem::exists(opened->set_aside)) << what;
  EXPECT_THAT(*opened->store->load(), IsEmpty()) << what;
  EXPECT_TRUE(opened->store->save({.record = example()})) << what;
}

TEST(SqliteStore, LoadsWhatWasSaved) {
  const TestFolder folder;
  const std::string path = stored(folder);
  const auto services = *open(path)->load();
  ASSERT_THAT(services, SizeIs(1));
  const ServiceRecord expected = example();
  EXPECT_EQ(services[0].service, "digits");
  EXPECT_EQ(services[0].stable, "1");
  EXPECT_EQ(services[0].epoch, 8U);
  ASSERT_TRUE(services[0].rollout);
  const RolloutRecord& rollout = *services[0].rollout;
  EXPECT_EQ(rollout.spec, expected.rollout->spec);
  EXPECT_EQ(rollout.started_wall_ms, 1'700'000'000'000);
  EXPECT_EQ(rollout.seconds, 12.5);
  EXPECT_EQ(rollout.report.state.id, "digits-7");
  EXPECT_EQ(rollout.report.state.canary, "2");
  EXPECT_EQ(rollout.report.state.phase, rollout::Phase::kRolledBack);
  EXPECT_EQ(rollout.report.state.step, 2);
  EXPECT_EQ(rollout.report.state.reason, expected.rollout->report.state.reason);
  EXPECT_EQ(rollout.report.canary_answers, 50U);
  ASSERT_THAT(rollout.report.evidence, SizeIs(2));
  EXPECT_EQ(rollout.report.evidence[0].guard, "err");
  EXPECT_EQ(rollout.report.evidence[0].bits, 12.25);
  EXPECT_EQ(rollout.report.evidence[1].stable_events, 1U);
}

TEST(SqliteStore, ASecondSaveReplacesTheRecordAndAddsToTheHistory) {
  const TestFolder folder;
  const std::string path = stored(folder);
  const auto store = open(path);
  ServiceRecord record = example();
  record.stable = "2";
  ASSERT_TRUE(store->save({.record = record, .history = {entry("second"), entry("third")}}));
  EXPECT_EQ(store->load()->at(0).stable, "2");
  const auto history = *store->history("digits", 2);
  ASSERT_THAT(history, SizeIs(2));
  EXPECT_EQ(history[0].detail, "second");
  EXPECT_EQ(history[1].detail, "third");
  EXPECT_EQ(history[1].id, 3);
  EXPECT_EQ(history[1].actor, "ann");
  EXPECT_EQ(history[1].weight_ppm, 50'000U);
  EXPECT_THAT(*store->history("resnet", 10), IsEmpty());
}

TEST(SqliteStore, AFollowerReadsOnWhereItStoppedAcrossRestarts) {
  const TestFolder folder;
  const std::string path = stored(folder);
  {
    const auto store = open(path);
    EXPECT_EQ(*store->note("webhooks"), std::nullopt);
    const auto first = *store->history_after(0, 10);
    ASSERT_THAT(first, SizeIs(1));
    ASSERT_TRUE(store->set_note("webhooks", std::to_string(first[0].id)));
    ServiceRecord other = example();
    other.service = other.rollout->report.state.service = "resnet";
    HistoryEntry theirs = entry("theirs");
    theirs.service = "resnet";
    ASSERT_TRUE(store->save({.record = other, .history = {theirs}}));
    ASSERT_TRUE(store->save({.record = example(), .history = {entry("ours")}}));
  }
  const auto store = open(path);
  const auto seen = *store->note("webhooks");
  ASSERT_EQ(seen, "1");
  const auto missed = *store->history_after(1, 10);
  ASSERT_THAT(missed, SizeIs(2)) << "of every service, in order";
  EXPECT_EQ(missed[0].detail, "theirs");
  EXPECT_EQ(missed[1].detail, "ours");
  EXPECT_THAT(*store->history_after(1, 1), SizeIs(1));
  ASSERT_TRUE(store->set_note("webhooks", "3"));
  EXPECT_EQ(*store->note("webhooks"), "3");
  EXPECT_THAT(*store->history_after(3, 10), IsEmpty());
}

TEST(SqliteStore, TheHistoryIsAChainAcrossSavesAndRestarts) {
  const TestFolder folder;
  const std::string path = stored(folder);
  ASSERT_TRUE(open(path)->save({.record = example(), .history = {entry("second"), entry("third")}}));
  ServiceRecord other = example();
  other.service = other.rollout->report.state.service = "resnet";
  HistoryEntry others = entry("of another chain");
  others.service = "resnet";
  ASSERT_TRUE(open(path)->save({.record = other, .history = {others}}));
  ASSERT_TRUE(open(path)->save({.record = example(), .history = {entry("fourth")}}));
  auto history = *open(path)->history("digits", 10);
  ASSERT_THAT(history, SizeIs(4));
  EXPECT_FALSE(find_break(history));
  run_sql(path, "UPDATE history SET actor = 'bob' WHERE detail = 'third'");
  history = *open(path)->history("digits", 10);
  ASSERT_TRUE(find_break(history));
  EXPECT_EQ(history[find_break(history)->index].detail, "third");
}

TEST(SqliteStore, R14TheHistoryIsBounded) {
  const TestFolder folder;
  const auto store = open(folder.file("router.db"));
  ASSERT_TRUE(store->save({.record = example(), .history = std::vector<HistoryEntry>(kHistoryLimit - 1, entry("old"))}));
  ASSERT_TRUE(store->save({.record = example(), .history = {entry("new 1"), entry("new 2"), entry("new 3")}}));
  const auto history = *store->history("digits", kHistoryLimit + 10);
  ASSERT_THAT(history, SizeIs(kHistoryLimit));
  EXPECT_EQ(history.front().id, 3);
  EXPECT_EQ(history.back().detail, "new 3");
}

TEST(SqliteStore, S1MissingAndEmptyAreANewStore) {
  const TestFolder folder;
  write_bytes(folder.file("empty.db"), "");
  EXPECT_THAT(*open(folder.file("empty.db"))->load(), IsEmpty());
  EXPECT_THAT(*open(folder.file("missing.db"))->load(), IsEmpty());
}

TEST(SqliteStore, S1TruncatedIsSetAside) {
  const TestFolder folder;
  const std::string path = stored(folder);
  const std::string whole = bytes_of(path);
  for (const size_t length :
       {size_t{1}, size_t{15}, size_t{99}, size_t{600}, size_t{4096}, whole.size() / 2, whole.size() - 4096, whole.size() - 1}) {
    for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(path + suffix);
    write_bytes(path, whole.substr(0, length));
    expect_set_aside(path, "cut to " + std::to_string(length) + " bytes");
  }
}

TEST(SqliteStore, S1AFlippedBitIsNoticedOrWithoutEffect) {
  const TestFolder folder;
  const std::string path = stored(folder);
  const std::string whole = bytes_of(path);
  int noticed = 0;
  for (size_t bit = 0; bit < whole.size() * 8; bit += 1999) {
    for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(path + suffix);
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    write_bytes(path, flipped);
    auto opened = open_sqlite_store(path);
    if (!opened) continue;  // refused: e.g. the flip made another program's file of it, or one of a newer Serin
    if (!opened->damage.empty()) {
      ++noticed;
      continue;
    }
    const auto services = *opened->store->load();
    if (services.empty()) continue;
    EXPECT_EQ(services[0].stable, "1") << "bit " << bit;
    EXPECT_EQ(services[0].epoch, 8U) << "bit " << bit;
    if (!services[0].rollout) continue;
    EXPECT_EQ(services[0].rollout->report.state.phase, rollout::Phase::kRolledBack) << "bit " << bit;
  }
  EXPECT_GT(noticed, 0);
}

TEST(SqliteStore, S1ARowThatContradictsItselfIsSetAside) {
  const TestFolder folder;
  const std::string path = stored(folder);
  run_sql(path, "UPDATE services SET stable = '3'");
  expect_set_aside(path, "stable changed behind our back");
}

TEST(SqliteStore, S1AMissingTableIsSetAside) {
  const TestFolder folder;
  const std::string path = stored(folder);
  run_sql(path, "DROP TABLE rollouts");
  expect_set_aside(path, "no table rollouts");
}

TEST(SqliteStore, S1AGigabyteBehindItIsNotLookedAt) {
  const TestFolder folder;
  const std::string path = stored(folder);
  std::filesystem::resize_file(path, uintmax_t{1} << 30);  // sparse: it takes no room
  EXPECT_THAT(*open(path)->load(), SizeIs(1));
}

TEST(SqliteStore, S1AFileOlderThanItsCopiesIsAsGoodAsAnother) {
  const TestFolder folder;
  const std::string path = stored(folder);
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 365 * 60));
  EXPECT_THAT(*open(path)->load(), SizeIs(1));
}

TEST(SqliteStore, S1NotADatabaseIsSetAside) {
  const TestFolder folder;
  const std::string path = folder.file("router.db");
  write_bytes(path, std::string(10'000, 'x'));
  expect_set_aside(path, "10,000 times x");
}

TEST(SqliteStore, S1ADirectoryInPlaceIsRefusedAndStays) {
  const TestFolder folder;
  std::filesystem::create_directory(folder.file("router.db"));
  const auto opened = open_sqlite_store(folder.file("router.db"));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kInvalidArgument);
  EXPECT_TRUE(std::filesystem::is_directory(folder.file("router.db")));
}

TEST(SqliteStore, S1ANewerSchemaIsRefusedAndStays) {
  const TestFolder folder;
  const std::string path = stored(folder);
  run_sql(path, "PRAGMA user_version = 99");
  const auto opened = open_sqlite_store(path);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kUnsupported);
  EXPECT_THAT(opened.error().message, HasSubstr("newer serin (schema 99"));
  run_sql(path, "PRAGMA user_version = 4");
  EXPECT_THAT(*open(path)->load(), SizeIs(1)) << "nothing was lost";
}

TEST(SqliteStore, S1AnOlderSchemaIsBroughtUpToDate) {
  const TestFolder folder;
  const std::string path = stored(folder);
  run_sql(path,
          "DROP TABLE verdicts; DROP TABLE notes; ALTER TABLE history DROP COLUMN previous; ALTER TABLE history DROP COLUMN digest; "
          "PRAGMA user_version = 1");
  const auto store = open(path);
  EXPECT_THAT(*store->load(), SizeIs(1));
  EXPECT_EQ(store->history("digits", 1)->at(0).digest, "") << "it had none";
  ASSERT_TRUE(store->save({.record = example(), .verdicts = {{.id = "digits-7", .json = "{}"}}}));
  EXPECT_EQ(store->verdict("digits-7").value()->json, "{}");
}

TEST(SqliteStore, KeepsTheLatestVerdicts) {
  const TestFolder folder;
  const auto store = open(folder.file("router.db"));
  const int count = static_cast<int>(kVerdictLimit) + 20;
  for (int i = 0; i < count; ++i)
    ASSERT_TRUE(
        store->save({.record = example(),
                     .verdicts = {{.id = "digits-" + std::to_string(i), .wall_ms = i, .json = "{\"n\": " + std::to_string(i) + "}"}}}));
  EXPECT_FALSE(*store->verdict("digits-19"));
  EXPECT_EQ(store->verdict("digits-20").value()->json, "{\"n\": 20}");
  EXPECT_EQ(store->verdict("digits-" + std::to_string(count - 1)).value()->wall_ms, count - 1);
  ASSERT_TRUE(store->save({.record = example(), .verdicts = {{.id = "digits-50", .wall_ms = 9999, .json = "undone"}}}));
  EXPECT_EQ(store->verdict("digits-50").value()->json, "undone");
}

TEST(SqliteStore, S1AnotherProgramsDatabaseIsRefusedAndStays) {
  const TestFolder folder;
  const std::string path = folder.file("router.db");
  run_sql(path, "CREATE TABLE bookmarks (url TEXT)");
  const auto opened = open_sqlite_store(path);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("another program"));
  run_sql(path, "SELECT url FROM bookmarks");
}

TEST(SqliteStore, S1ASymlinkToAStoreIsFollowed) {
  const TestFolder folder;
  const std::string path = stored(folder);
  std::filesystem::create_symlink(path, folder.file("link.db"));
  EXPECT_THAT(*open(folder.file("link.db"))->load(), SizeIs(1));
}

TEST(SqliteStore, S1NoPermissionIsAnErrorThatNamesTheFile) {
  const TestFolder folder;
  const std::string path = stored(folder);
  ::chmod(folder.path().c_str(), 0755);
  ::chmod(path.c_str(), 0400);
  const pid_t other = ::fork();
  if (other == 0) {  // root may write everything: look at it as somebody else
    if (::geteuid() == 0 && ::seteuid(65534) != 0) ::_exit(3);
    const auto opened = open_sqlite_store(path);
    if (opened) ::_exit(1);
    const bool named = opened.error().code == Code::kPermissionDenied && opened.error().message.find(path) != std::string::npos;
    ::_exit(named ? 0 : 2);
  }
  int status = 0;
  ::waitpid(other, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_THAT(*open(path)->load(), SizeIs(1)) << "nothing was touched";
}

TEST(SqliteStore, S1AFolderThatIsNotThereIsAnErrorThatNamesTheFile) {
  const TestFolder folder;
  const auto opened = open_sqlite_store(folder.file("absent/router.db"));
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("absent/router.db"));
}

}  // namespace
}  // namespace serin::store
