// The lines that the store keeps: they come back in their order, places are used again, and a store that takes nothing fills no memory.

#include "router/outcomes/prediction_log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

namespace serin::router {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class PredictionLogTest : public ::testing::Test {
 protected:
  void write() {
    for (const auto& note : log_.unwritten()) {
      store_[note.place] = note.text;
      written_ += note.text.size();
    }
  }
  /// Of a program that begins with what the store has.
  std::vector<std::string> after_restart() {
    log_ = {};
    std::vector<PredictionLog::Note> notes;
    for (const auto& [place, text] : store_) notes.push_back({.place = place, .text = text});
    std::vector<std::string> lines;
    for (auto& line : log_.restore(std::move(notes))) lines.push_back(std::move(line.text));
    return lines;
  }
  static std::string long_line(int number) { return fmt::format("{} {}", number, std::string(PredictionLog::kSegment / 2, 'x')); }

  PredictionLog log_;
  std::map<size_t, std::string> store_;
  size_t written_ = 0;
};

TEST_F(PredictionLogTest, LinesComeBackInTheirOrder) {
  log_.append("one");
  log_.append("two");
  write();
  EXPECT_THAT(log_.unwritten(), IsEmpty());
  log_.append("three");
  write();
  log_.append("never written");
  EXPECT_THAT(after_restart(), ElementsAre("one", "two", "three"));
  log_.append("four");
  write();
  EXPECT_THAT(after_restart(), ElementsAre("one", "two", "three", "four"));
  EXPECT_THAT(store_, SizeIs(1));
}

TEST_F(PredictionLogTest, AFullSegmentIsWrittenOnceAndItsPlaceIsUsedAgain) {
  uint32_t last = 0;
  for (int i = 0; i < 100; ++i) {
    last = log_.append(long_line(i));
    log_.keep_from(last < 3 ? 0 : last - 3);
    write();
  }
  EXPECT_LE(store_.size(), 6U);
  EXPECT_LE(written_, 100 * (PredictionLog::kSegment / 2 + 100));
  const auto lines = after_restart();
  ASSERT_THAT(lines, SizeIs(4));
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_TRUE(lines[i].starts_with(fmt::format("{} ", 96 + i)));
  EXPECT_EQ(log_.append("x"), last) << "the last one goes on";
  EXPECT_GT(log_.append(long_line(100)), last) << "numbers of segments rise over restarts";
}

TEST_F(PredictionLogTest, OfNothingNothingIsLeft) {
  log_.append("one");
  write();
  log_.keep_none();
  write();
  EXPECT_THAT(store_, ElementsAre(std::pair(size_t{0}, std::string())));
  EXPECT_THAT(after_restart(), IsEmpty());
  log_.append("two");
  write();
  EXPECT_THAT(after_restart(), ElementsAre("two"));
}

TEST_F(PredictionLogTest, ALineIsLongerThanASegment) {
  const std::string line(3 * PredictionLog::kSegment, 'y');
  log_.append("before");
  log_.append(line);
  log_.append("after");
  write();
  EXPECT_THAT(after_restart(), ElementsAre("before", line, "after"));
}

TEST_F(PredictionLogTest, WhatWasNotTakenIsWrittenAgain) {
  log_.append(long_line(1));
  log_.append(long_line(2));
  log_.append(long_line(3));
  auto refused = log_.unwritten();
  log_.append("four");
  log_.write_again(std::move(refused));
  write();
  EXPECT_THAT(after_restart(), ElementsAre(long_line(1), long_line(2), long_line(3), "four"));
  log_.keep_none();
  log_.write_again(log_.unwritten());
  write();
  EXPECT_THAT(after_restart(), IsEmpty());
}

TEST_F(PredictionLogTest, AStoreThatTakesNothingFillsNoMemory) {
  constexpr int kLines = 3 * static_cast<int>(PredictionLog::kMostUnwritten);
  for (int i = 0; i < kLines; ++i) {
    log_.append(long_line(i));
    log_.write_again(log_.unwritten());
  }
  size_t bytes = 0;
  for (const auto& note : log_.unwritten()) bytes += note.text.size();
  EXPECT_LE(bytes, PredictionLog::kMostUnwritten * PredictionLog::kSegment);
  EXPECT_GT(bytes, PredictionLog::kMostUnwritten * PredictionLog::kSegment / 3);
}

TEST_F(PredictionLogTest, NotesOfNoKindAreNoLines) {
  store_ = {{0, "no number\nline\n"}, {1, ""}, {2, "7\nright\nunfinished"}, {3, "8"}};
  EXPECT_THAT(after_restart(), ElementsAre("right"));
  EXPECT_EQ(log_.append("next"), 7U);
}

}  // namespace
}  // namespace serin::router
