#include "runtime/base/recently_used.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace serin {
namespace {

using testing::ElementsAre;

std::vector<int> contents(const RecentlyUsed<int>& list) { return {list.begin(), list.end()}; }

TEST(RecentlyUsed, TheLeastRecentlyUsedGoesFirst) {
  RecentlyUsed<int> list;
  for (const int number : {1, 2, 3}) list.add(number);
  EXPECT_THAT(contents(list), ElementsAre(3, 2, 1));
  ASSERT_NE(list.find([](int number) { return number == 1; }), nullptr);
  EXPECT_THAT(contents(list), ElementsAre(1, 3, 2));
  list.drop_oldest();
  EXPECT_THAT(contents(list), ElementsAre(1, 3));
}

TEST(RecentlyUsed, SearchingInVainChangesNothing) {
  RecentlyUsed<int> list;
  for (const int number : {1, 2}) list.add(number);
  EXPECT_EQ(list.find([](int number) { return number == 7; }), nullptr);
  EXPECT_THAT(contents(list), ElementsAre(2, 1));
}

TEST(RecentlyUsed, EntriesStayWhereTheyAre) {
  RecentlyUsed<std::string> list;
  const std::string* first = &list.add("first");
  list.add("second");
  EXPECT_EQ(list.find([](const std::string& text) { return text == "first"; }), first);
  EXPECT_EQ(list.size(), 2u);
  list.clear();
  EXPECT_TRUE(list.empty());
}

}  // namespace
}  // namespace serin
