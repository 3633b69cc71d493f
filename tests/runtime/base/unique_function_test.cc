#include "runtime/base/unique_function.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>

namespace serin {
namespace {

TEST(UniqueFunction, CallsWhatItHolds) {
  UniqueFunction<int(int, int)> add = [](int a, int b) { return a + b; };
  EXPECT_EQ(add(2, 3), 5);
  add = [](int a, int b) { return a - b; };
  EXPECT_EQ(add(2, 3), -1);
}

TEST(UniqueFunction, KnowsWhetherThereIsSomething) {
  UniqueFunction<void()> work;
  EXPECT_FALSE(work);
  work = [] {};
  EXPECT_TRUE(work);
  const UniqueFunction<void()> taken = std::move(work);
  EXPECT_FALSE(work);  // NOLINT(bugprone-use-after-move): that is the question
  EXPECT_TRUE(taken);
}

TEST(UniqueFunction, TakesWhatCannotBeCopied) {
  UniqueFunction<int()> work = [number = std::make_unique<int>(7)] { return *number; };
  UniqueFunction<int()> moved = std::move(work);
  EXPECT_EQ(moved(), 7);
}

TEST(UniqueFunction, TakesWhatIsLargerThanItsRoom) {
  std::array<char, 100> large{};
  large.back() = 'x';
  UniqueFunction<char()> work = [large] { return large.back(); };
  UniqueFunction<char()> moved = std::move(work);
  EXPECT_EQ(moved(), 'x');
}

TEST(UniqueFunction, HasRoomForAStdFunction) {
  static_assert(sizeof(std::function<void()>) <= UniqueFunction<void()>::kRoom);
  const std::function<int()> copied = [] { return 3; };
  UniqueFunction<int()> work = copied;
  EXPECT_EQ(work(), 3);
}

TEST(UniqueFunction, HandsArgumentsOnWithoutCopies) {
  UniqueFunction<std::string(std::unique_ptr<std::string>)> work = [](std::unique_ptr<std::string> text) { return *text; };
  EXPECT_EQ(work(std::make_unique<std::string>("there")), "there");
}

TEST(UniqueFunction, EndsWhatItHeldOnce) {
  const auto held = std::make_shared<int>(1);
  {
    UniqueFunction<void()> work = [held] {};
    UniqueFunction<void()> moved = std::move(work);
    EXPECT_EQ(held.use_count(), 2);
    moved = nullptr;
    EXPECT_EQ(held.use_count(), 1);
    moved = [held] {};
    EXPECT_EQ(held.use_count(), 2);
  }
  EXPECT_EQ(held.use_count(), 1);
}

TEST(UniqueFunction, MayBeReplacedByWhatItHolds) {
  UniqueFunction<void()> work;
  const auto held = std::make_shared<int>(1);
  struct Replaces {
    UniqueFunction<void()>* place;
    std::shared_ptr<int> held;
    Replaces(UniqueFunction<void()>* at, std::shared_ptr<int> kept) : place(at), held(std::move(kept)) {}
    Replaces(Replaces&&) = default;
    ~Replaces() {
      if (!held) return;
      EXPECT_TRUE(*place) << "the new one is in its place already";
    }
    void operator()() const {}
  };
  work = Replaces(&work, held);
  work = [] {};
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace serin
