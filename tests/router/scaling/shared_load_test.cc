// shared_load_test.cc: the sums of several routers, and what becomes of one that is silent.

#include "router/scaling/shared_load.h"

#include <gtest/gtest.h>

namespace serin::router {
namespace {

using std::chrono::milliseconds;
const SharedLoad::Time kFirst{std::chrono::seconds(5000)};

std::vector<VersionLoad> load(int64_t in_flight, double rate, int64_t unserved) {
  return {{.service = "digits", .version = "1", .in_flight = in_flight, .requests_per_second = rate, .unserved = unserved},
          {.service = "digits", .version = "2"}};
}

/// As it comes over the wire.
void tell(SharedLoad& shared, const std::string& member, std::vector<VersionLoad> loads, SharedLoad::Time now) {
  auto message = decode_loads(encode_loads({.member = member, .loads = std::move(loads)}));
  ASSERT_TRUE(message);
  shared.note(*std::move(message), now);
}

TEST(SharedLoad, IsTheSumOfWhatAllTell) {
  SharedLoad shared;
  tell(shared, "b", load(5, 2.5, 1), kFirst);
  tell(shared, "c", load(0, 0, 0), kFirst);
  tell(shared, "gone", load(100, 100, 100), kFirst);
  const auto whole = shared.with(load(1, 0.5, 0), {"b", "c"}, kFirst + milliseconds(300));
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole[0].in_flight, 6);
  EXPECT_EQ(whole[0].requests_per_second, 3);
  EXPECT_EQ(whole[0].unserved, 1);
  EXPECT_EQ(whole[1].in_flight, 0);
}

TEST(SharedLoad, OneThatIsSilentCountsAsThisOne) {
  SharedLoad shared;
  tell(shared, "b", load(5, 2, 4), kFirst);
  const auto whole = shared.with(load(1, 0.5, 2), {"b", "c"}, kFirst + milliseconds(2100));
  EXPECT_EQ(whole[0].in_flight, 3);
  EXPECT_EQ(whole[0].requests_per_second, 1.5);
  EXPECT_EQ(whole[0].unserved, 2) << "nobody knows whether a request came there";
}

TEST(SharedLoad, VersionsThatThisRouterDoesNotHaveAreLeftOut) {
  SharedLoad shared;
  tell(shared, "b", {{.service = "digits", .version = "3", .in_flight = 7}}, kFirst);
  const auto whole = shared.with(load(1, 0, 0), {"b"}, kFirst);
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole[0].in_flight, 1);
}

TEST(SharedLoad, RefusesWhatIsNoLoad) {
  for (const std::string text :
       {"", "[]", "{}", R"({"member":1,"loads":[]})", R"({"member":"b"})", R"({"member":"b","loads":[1]})",
        R"({"member":"b","loads":[{"service":"a","version":"1"}]})",
        R"({"member":"b","loads":[{"service":"a","version":"1","in_flight":-1,"requests_per_second":0,"unserved":0}]})",
        R"({"member":"b","loads":[{"service":"a","version":"1","in_flight":1e300,"requests_per_second":0,"unserved":0}]})"})
    EXPECT_EQ(decode_loads(text).error().code, Code::kCorrupt) << text;
}

}  // namespace
}  // namespace serin::router
