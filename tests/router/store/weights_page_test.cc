// The page is what a killed router leaves: what is read back is what was stored, or nothing.

#include "router/store/weights_page.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "router/store/digest.h"
#include "tests/router/store/test_folder.h"

namespace serin::store {
namespace {

using ::testing::ElementsAre;

const std::vector<WeightsPage::Slot> kSlots = {{.service = "digits", .versions = {"1", "2"}, .word = 7, .epoch = 3},
                                               {.service = "resnet", .versions = {"a"}, .word = 9, .epoch = 1}};

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_bytes(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

TEST(WeightsPage, ReadsBackWhatWasStored) {
  const TestFolder folder;
  const std::string path = folder.file("w");
  auto page = WeightsPage::create(path, kSlots);
  ASSERT_TRUE(page) << page.error().message;
  page->store(1, 42, 5, "err", "err: 7 of 9 failures were the canary's");
  EXPECT_EQ(page->word(1).load(), 42U);

  const auto digits = WeightsPage::read(path, "digits");
  ASSERT_TRUE(digits);
  EXPECT_EQ(digits->word, 7U);
  EXPECT_THAT(digits->versions, ElementsAre(digest("1"), digest("2")));
  const auto resnet = WeightsPage::read(path, "resnet");
  ASSERT_TRUE(resnet);
  EXPECT_EQ(resnet->word, 42U);
  EXPECT_EQ(resnet->epoch, 5U);
  EXPECT_EQ(resnet->cause, "err");
  EXPECT_EQ(resnet->reason, "err: 7 of 9 failures were the canary's");
  EXPECT_FALSE(WeightsPage::read(path, "bert"));
}

TEST(WeightsPage, ALongReasonIsCut) {
  const TestFolder folder;
  auto page = WeightsPage::create(folder.file("w"), kSlots);
  ASSERT_TRUE(page);
  page->store(0, 1, 1, std::string(500, 'c'), std::string(5000, 'r'));
  const auto found = WeightsPage::read(folder.file("w"), "digits");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cause, std::string(71, 'c'));
  EXPECT_EQ(found->reason, std::string(399, 'r'));
  EXPECT_TRUE(WeightsPage::read(folder.file("w"), "resnet")) << "the neighbour is untouched";
  for (const size_t before : {397U, 398U, 399U}) {  // it goes on as JSON, which takes whole characters only
    page->store(0, 1, 1, "err", std::string(before, 'r') + "\xE2\x82\xAC");
    EXPECT_EQ(WeightsPage::read(folder.file("w"), "digits")->reason, std::string(before, 'r'));
  }
}

TEST(WeightsPage, SurvivesTheKillOfItsWriter) {
  const TestFolder folder;
  const std::string path = folder.file("w");
  const pid_t writer = ::fork();
  if (writer == 0) {
    auto page = WeightsPage::create(path, kSlots);
    page->store(0, 1234, 8);
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(writer, nullptr, 0);
  const auto found = WeightsPage::read(path, "digits");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->word, 1234U);
}

TEST(WeightsPage, S1TruncatedAnywhereIsNoPage) {
  const TestFolder folder;
  const std::string path = folder.file("w");
  ASSERT_TRUE(WeightsPage::create(path, kSlots));
  const std::string whole = bytes_of(path);
  for (size_t length = 0; length < whole.size(); length += 97) {
    write_bytes(path, whole.substr(0, length));
    EXPECT_FALSE(WeightsPage::read(path, "digits")) << "cut to " << length << " bytes";
  }
}

TEST(WeightsPage, S1AFlippedBitIsNeverAnotherWord) {
  const TestFolder folder;
  const std::string path = folder.file("w");
  ASSERT_TRUE(WeightsPage::create(path, kSlots));
  const std::string whole = bytes_of(path);
  for (size_t bit = 0; bit < whole.size() * 8; bit += 41) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    write_bytes(path, flipped);
    if (const auto found = WeightsPage::read(path, "digits")) {
      EXPECT_EQ(found->word, 7U) << "bit " << bit;
      EXPECT_THAT(found->versions, ElementsAre(digest("1"), digest("2"))) << "bit " << bit;
    }
  }
}

TEST(WeightsPage, S1ADirectoryInItsPlace) {
  const TestFolder folder;
  std::filesystem::create_directory(folder.file("w"));
  EXPECT_FALSE(WeightsPage::read(folder.file("w"), "digits"));
  EXPECT_FALSE(WeightsPage::create(folder.file("w"), kSlots));
}

TEST(WeightsPage, S1ATemporaryFileLeftOver) {
  const TestFolder folder;
  write_bytes(folder.file("w.new"), "half a page");
  EXPECT_TRUE(WeightsPage::create(folder.file("w"), kSlots));
  EXPECT_TRUE(WeightsPage::read(folder.file("w"), "digits"));
}

}  // namespace
}  // namespace serin::store
