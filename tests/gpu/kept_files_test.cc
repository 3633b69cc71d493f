// What was made once is found by the next process, for the same scope and key alone; a file that is of no use is not found, and is made anew.

#include "kernels/cuda/kept_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace serin::kernels::cuda {
namespace {

class Keeps : public testing::Test {
 protected:
  ~Keeps() override { std::filesystem::remove_all(above_); }
  std::vector<std::filesystem::path> files() const {
    return {std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()};
  }

  const std::string above_ = testing::TempDir() + "kept." + std::to_string(::getpid()), folder_ = above_ + "/below";
  const std::string bytes_ = std::string(
                                 "\x7f"
                                 "ELF\0\n\n\0",
                                 8) +
                             std::string(100000, 'x');
};

TEST_F(Keeps, BytesUnderTheirKey) {
  KeptFiles(folder_, "H200, build 1").keep("text\nof two lines", bytes_);
  const KeptFiles again(folder_, "H200, build 1");
  EXPECT_EQ(again.find("text\nof two lines"), bytes_);
  EXPECT_EQ(again.find("text\nof"), std::nullopt);
  EXPECT_EQ(KeptFiles(folder_, "H200, build 2").find("text\nof two lines"), std::nullopt);
  again.keep("empty", "");
  EXPECT_EQ(again.find("empty"), "");
  EXPECT_EQ(files().size(), 2u) << "nothing is left aside";
}

TEST_F(Keeps, NothingThatIsTornOrChanged) {
  const KeptFiles kept(folder_, "H200");
  kept.keep("a", bytes_);
  const auto path = files().at(0);
  std::string whole;
  std::getline(std::ifstream(path, std::ios::binary), whole, '\x01');  // all of it
  ASSERT_GT(whole.size(), bytes_.size());
  const auto with = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    return kept.find("a");
  };
  for (const size_t length : {size_t{0}, size_t{5}, size_t{20}, whole.size() - bytes_.size(), whole.size() - 1})
    EXPECT_EQ(with(whole.substr(0, length)), std::nullopt) << length;
  std::string changed = whole;
  changed.back() = 'y';
  EXPECT_EQ(with(changed), std::nullopt);
  EXPECT_EQ(with(whole + "x"), std::nullopt);
  kept.keep("a", "new");
  EXPECT_EQ(kept.find("a"), "new");
}

TEST_F(Keeps, WhatOneWritesWhileOthersRead) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int writer = 0; writer < 4; ++writer) {
    threads.emplace_back([this] {
      const KeptFiles kept(folder_, "H200");
      for (int i = 0; i < 25; ++i) {
        kept.keep("a", bytes_);
        EXPECT_EQ(kept.find("a"), bytes_);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(Keeps, NothingWithoutAFolder) {
  const KeptFiles nowhere("", "H200");
  nowhere.keep("a", "b");
  EXPECT_EQ(nowhere.find("a"), std::nullopt);
  std::filesystem::create_directories(above_);
  std::ofstream(folder_) << "a file";
  const KeptFiles kept(folder_, "H200");
  kept.keep("a", "b");
  EXPECT_EQ(kept.find("a"), std::nullopt);
}

}  // namespace
}  // namespace serin::kernels::cuda
