// api_client_test.cc: the parts of the client that need no server. tests/e2e asks a server in memory, tests/kubernetes a real one.

#include "router/kubernetes/api_client.h"

#include <gtest/gtest.h>

namespace serin::kubernetes {
namespace {

using std::chrono::milliseconds;

TEST(ApiClient, APauseDoublesUpToALimitAndIsNeverShorterThanTheServerAsksFor) {
  Backoff backoff;
  const milliseconds none(0);
  for (const int64_t most : {200, 400, 800, 1600, 3200, 5000, 5000}) {
    const milliseconds pause = backoff.next(none);
    EXPECT_GE(pause.count(), most / 2);
    EXPECT_LE(pause.count(), most);
  }
  EXPECT_EQ(backoff.next(milliseconds(30'000)), milliseconds(30'000));
  backoff.reset();
  EXPECT_LE(backoff.next(none).count(), 200);
}

TEST(ApiClient, ASelectorIsEscaped) {
  EXPECT_EQ(escaped("kubernetes.io/service-name in (a,b)"), "kubernetes.io/service-name%20in%20%28a%2Cb%29");
  EXPECT_EQ(escaped("a=b&c"), "a%3Db%26c");
}

TEST(ApiClient, MembersAreFoundByTheirPath) {
  const boost::json::value value = boost::json::parse(R"({"metadata": {"name": "a", "labels": {"x": 1}}})");
  EXPECT_EQ(text_at(value.as_object(), {"metadata", "name"}), "a");
  EXPECT_EQ(text_at(value.as_object(), {"metadata", "labels", "x"}), "") << "not a text";
  EXPECT_EQ(text_at(value.as_object(), {"metadata", "name", "more"}), "");
  EXPECT_EQ(find_at(value.as_object(), {"spec"}), nullptr);
}

TEST(ApiClient, AnyTextBecomesAName) {
  EXPECT_EQ(as_name("Digits~2_x"), "digits-2-x");
  EXPECT_EQ(as_name("abcdef", 3), "abc");
}

}  // namespace
}  // namespace serin::kubernetes
