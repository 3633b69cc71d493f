#include "runtime/base/recycler.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace serin {
namespace {

struct Note {
  void clear() { clear_for_reuse(text); }
  std::string text;
};

TEST(Recycler, GivesOutMemoryThatWasUsedAndNothingThatWasWritten) {
  Recycler<Note> notes;
  auto first = notes.take();
  first->text.assign(1000, 'x');
  const Note* const place = first.get();
  first.reset();
  const auto second = notes.take();
  EXPECT_EQ(second.get(), place);
  EXPECT_TRUE(second->text.empty());
  EXPECT_GE(second->text.capacity(), 1000u);
}

TEST(Recycler, OneThatIsInUseIsNotGivenOutAgain) {
  Recycler<Note> notes;
  const auto first = notes.take(), second = notes.take();
  EXPECT_NE(first, second);
}

TEST(Recycler, AWeakPointerKnowsOneLifeOnly) {
  Recycler<Note> notes;
  auto first = notes.take();
  const std::weak_ptr<Note> weak = first;
  const Note* const place = first.get();
  first.reset();
  const auto second = notes.take();
  ASSERT_EQ(second.get(), place);
  EXPECT_TRUE(weak.expired());
}

TEST(Recycler, LargeMemoryIsGivenBack) {
  Recycler<Note> notes;
  notes.take()->text.assign(2 * kMostRecycledBytes, 'x');
  EXPECT_LT(notes.take()->text.capacity(), 100u);
}

struct Counted {
  Counted() { ++living; }
  ~Counted() { --living; }
  void clear() {}
  static inline int living = 0;
};

TEST(Recycler, KeepsSoManyAndNoMore) {
  {
    Recycler<Counted> recycler;
    std::vector<std::shared_ptr<Counted>> all;
    for (size_t i = 0; i < 2 * Recycler<Counted>::kMost; ++i) all.push_back(recycler.take());
    all.clear();
    EXPECT_EQ(Counted::living, static_cast<int>(Recycler<Counted>::kMost));
  }
  EXPECT_EQ(Counted::living, 0);
}

TEST(Recycler, PointersMayOutliveIt) {
  std::shared_ptr<Note> note;
  {
    Recycler<Note> notes;
    note = notes.take();
  }
  note->text = "still there";
}

TEST(Recycler, ManyThreadsTakeAndGive) {
  Recycler<Note> notes;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&notes, mine = std::string(10, static_cast<char>('a' + i))] {
      for (int round = 0; round < 1000; ++round) {
        const auto note = notes.take();
        ASSERT_TRUE(note->text.empty());
        note->text = mine;
        ASSERT_EQ(note->text, mine);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace serin
