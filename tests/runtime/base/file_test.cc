// file_test.cc: small files, read with limits and replaced whole.

#include "runtime/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

namespace serin {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("file_test_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return folder_ / name; }
  std::filesystem::path folder_;
};

TEST_F(FileTest, WritesAndReadsBack) {
  ASSERT_TRUE(write_file_atomically(path("a"), "first"));
  ASSERT_TRUE(write_file_atomically(path("a"), "second"));
  EXPECT_EQ(read_file(path("a"), 100).value(), "second");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "no temporary file is left behind";
}

TEST_F(FileTest, ReadsAndWritesAtAPlace) {
  const int fd = ::open(path("places").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(fd, 0);
  EXPECT_TRUE(write_at(fd, 4, "efgh"));
  EXPECT_TRUE(write_at(fd, 0, "abcd"));
  std::string text(5, '-');
  EXPECT_EQ(read_at(fd, 2, text), 5U);
  EXPECT_EQ(text, "cdefg");
  EXPECT_EQ(read_at(fd, 6, text), 2U) << "the file ends there";
  EXPECT_EQ(text.substr(0, 2), "gh");
  EXPECT_EQ(read_at(fd, 100, text), 0U);
  ::close(fd);
  EXPECT_FALSE(write_at(fd, 0, "a"));
  EXPECT_FALSE(read_at(fd, 0, text));
  EXPECT_EQ(errno, EBADF);
}

TEST_F(FileTest, RefusesWhatIsNoRegularFile) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(read_file(path("fifo"), 100).error().code, Code::kInvalidArgument);  // and does not wait for a writer
  EXPECT_EQ(read_file(folder_, 100).error().code, Code::kInvalidArgument);
  EXPECT_EQ(read_file("/dev/zero", 100).error().code, Code::kInvalidArgument);
  EXPECT_EQ(read_file(path("none"), 100).error().code, Code::kNotFound);
}

TEST_F(FileTest, RefusesWhatIsOverTheLimit) {
  std::ofstream(path("big")) << std::string(101, 'x');
  EXPECT_EQ(read_file(path("big"), 100).error().code, Code::kTooLarge);
  EXPECT_TRUE(read_file(path("big"), 101));
}

TEST_F(FileTest, AWriteThatFailsNamesTheFile) {
  const auto status = write_file_atomically(path("no/such/folder"), "x");
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("no/such/folder"), std::string::npos);
}

}  // namespace
}  // namespace serin
