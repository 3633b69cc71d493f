// spare_time_test.cc: copies that nobody asked for come only to an idle endpoint, take a tenth of its time, and mark who may have waited for them.

#include "router/proxy/spare_time.h"

#include <gtest/gtest.h>

namespace serin::router {
namespace {

using std::chrono::milliseconds;

constexpr auto kBegin = Time(std::chrono::hours(1000));
constexpr milliseconds kPatience{1000};

struct One {
  One() : endpoints("digits", config(), next, registry) {}
  static VersionConfig config() {
    VersionConfig version;
    version.name = "2";
    version.endpoints = {{.url = "http://127.0.0.1:8001", .origin = {"127.0.0.1", 8001}, .path = ""}};
    return version;
  }
  EndpointState& endpoint() { return *endpoints.list()->front(); }

  metrics::Registry registry;
  std::atomic<uint32_t> next{0};
  Endpoints endpoints;
};

TEST(SpareTime, IsWhileTheEndpointHasNothingElseToDo) {
  One one;
  one.endpoints.begin(one.endpoint());
  EXPECT_FALSE(begin_copy(one.endpoint(), kBegin));
  one.endpoints.end(one.endpoint());
  EXPECT_TRUE(begin_copy(one.endpoint(), kBegin));
  EXPECT_FALSE(begin_copy(one.endpoint(), kBegin)) << "one at a time";
  end_copy(one.endpoint(), kBegin, kBegin + milliseconds(20));
  EXPECT_FALSE(begin_copy(one.endpoint(), kBegin + milliseconds(199)));
  EXPECT_TRUE(begin_copy(one.endpoint(), kBegin + milliseconds(200))) << "a tenth of the time";
  end_copy(one.endpoint(), kBegin + milliseconds(200), kBegin + milliseconds(200));
  EXPECT_FALSE(begin_copy(one.endpoint(), kBegin + milliseconds(209))) << "and not more than a hundred a second";
  EXPECT_TRUE(begin_copy(one.endpoint(), kBegin + milliseconds(210)));
}

TEST(SpareTime, MarksWhoMayHaveWaited) {
  One one;
  EndpointState& endpoint = one.endpoint();
  const auto marks = [&](int ms) { return may_wait_for_copy(endpoint, kBegin + milliseconds(ms), kPatience); };
  EXPECT_FALSE(marks(0));
  ASSERT_TRUE(begin_copy(endpoint, kBegin));
  EXPECT_TRUE(marks(5));
  one.endpoints.begin(endpoint);
  end_copy(endpoint, kBegin, kBegin + milliseconds(20));
  EXPECT_TRUE(marks(21)) << "behind one that had to wait";
  one.endpoints.begin(endpoint);
  one.endpoints.end(endpoint);
  EXPECT_TRUE(marks(22));
  one.endpoints.end(endpoint);
  EXPECT_FALSE(marks(23)) << "it was idle";
  ASSERT_TRUE(begin_copy(endpoint, kBegin + milliseconds(300)));
  end_copy(endpoint, kBegin + milliseconds(300), kBegin + milliseconds(310));
  EXPECT_FALSE(marks(311));
}

TEST(SpareTime, IsNoExcuseForACanaryThatHangs) {
  One one;
  ASSERT_TRUE(begin_copy(one.endpoint(), kBegin));
  EXPECT_TRUE(may_wait_for_copy(one.endpoint(), kBegin + kPatience - milliseconds(1), kPatience));
  EXPECT_FALSE(may_wait_for_copy(one.endpoint(), kBegin + kPatience, kPatience));
}

}  // namespace
}  // namespace serin::router
