// endpoints_test.cc: which endpoint gets a request.

#include "router/proxy/endpoints.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

namespace serin::router {
namespace {

constexpr auto kNow = Time(std::chrono::hours(1000));

Endpoint endpoint(uint16_t port) { return {.url = "http://127.0.0.1:" + std::to_string(port), .origin = {"127.0.0.1", port}, .path = ""}; }

VersionConfig three() {
  VersionConfig version;
  version.name = "2";
  for (const uint16_t port : {8001, 8002, 8003}) version.endpoints.push_back(endpoint(port));
  return version;
}

struct Three {
  explicit Three(const VersionConfig& config = three()) : endpoints("digits", config, next, registry) {}

  metrics::Registry registry;
  std::atomic<uint32_t> next{5};
  Endpoints endpoints;

  EndpointState& at(size_t i) { return *(*endpoints.list())[i]; }
  void set_healthy(size_t i, bool healthy) {
    at(i).healthy = healthy;
    endpoints.count_healthy();
  }
  void fail(size_t i, int times, Time now = kNow) {
    for (int n = 0; n < times; ++n) endpoints.learn(at(i), /*failed=*/true, now);
  }
  std::set<uint32_t> chosen(const EndpointState* avoid = nullptr, Time now = kNow) {
    std::set<uint32_t> indices;
    const auto list = endpoints.list();
    for (uint64_t random = 0; random < 30; ++random)
      if (const EndpointState* one = endpoints.choose(*list, random, now, avoid)) indices.insert(one->index);
    return indices;
  }
};

using Indices = std::set<uint32_t>;

TEST(Endpoints, IndicesGoOnFromTheVersionBefore) {
  Three three;
  EXPECT_EQ(three.at(0).index, 5u);
  EXPECT_EQ(three.at(2).index, 7u);
}

TEST(Endpoints, EveryoneIsHealthyUntilACheckSaysOtherwise) {
  Three three;
  EXPECT_EQ(three.endpoints.healthy(), 3u);
  EXPECT_EQ(three.chosen(), (Indices{5, 6, 7}));
}

TEST(Endpoints, TheLeastBusyIsChosenAndTiesAreBrokenByTheDraw) {
  Three three;
  three.at(0).in_flight = 2;
  three.at(1).in_flight = 1;
  three.at(2).in_flight = 1;
  EXPECT_EQ(three.chosen(), (Indices{6, 7}));
}

TEST(Endpoints, AnUnhealthyOneIsLeftOutHoweverBusyTheOthersAre) {
  Three three;
  three.set_healthy(0, false);
  three.at(1).in_flight = 1000;
  three.at(2).in_flight = 1000;
  EXPECT_EQ(three.endpoints.healthy(), 2u);
  EXPECT_EQ(three.chosen(), (Indices{6, 7}));
}

TEST(Endpoints, WhereNoneIsHealthyOneIsTriedAllTheSame) {
  Three three;
  for (size_t i = 0; i < 3; ++i) three.set_healthy(i, false);
  EXPECT_EQ(three.endpoints.healthy(), 0u);
  EXPECT_EQ(three.chosen(), (Indices{5, 6, 7}));
}

TEST(Endpoints, TheOneToAvoidIsTakenOnlyWhereItIsAlone) {
  Three three;
  EXPECT_EQ(three.chosen(&three.at(1)), (Indices{5, 7}));
  three.set_healthy(0, false);
  three.set_healthy(2, false);
  EXPECT_EQ(three.chosen(&three.at(1)), (Indices{5, 7})) << "another try elsewhere beats the one that just failed";
}

TEST(Endpoints, OneAtItsLimitIsNotChosenAndWhereAllAreNobodyIs) {
  VersionConfig config = three();
  config.max_in_flight = 2;
  Three full(config);
  full.at(0).in_flight = 2;
  full.at(1).in_flight = 1;
  EXPECT_EQ(full.chosen(), (Indices{7}));
  full.at(1).in_flight = full.at(2).in_flight = 2;
  EXPECT_EQ(full.chosen(), Indices{});
}

TEST(Endpoints, FailuresInARowEjectForLongerEachTime) {
  Three three;
  three.fail(0, 4);
  three.endpoints.learn(three.at(0), /*failed=*/false, kNow);
  three.fail(0, 4);
  EXPECT_EQ(three.chosen(), (Indices{5, 6, 7})) << "a success in between begins the count again";
  three.fail(0, 1);
  EXPECT_EQ(three.chosen(), (Indices{6, 7}));
  const Time back = kNow + std::chrono::seconds(5);
  EXPECT_EQ(three.chosen(nullptr, back), (Indices{5, 6, 7}));
  three.fail(0, 5, back);
  EXPECT_EQ(three.chosen(nullptr, back + std::chrono::seconds(9)), (Indices{6, 7})) << "twice as long";
  EXPECT_EQ(three.chosen(nullptr, back + std::chrono::seconds(10)), (Indices{5, 6, 7}));
}

TEST(Endpoints, NeverMoreThanHalfAreEjected) {
  Three three;
  for (size_t i = 0; i < 3; ++i) three.fail(i, 100);
  EXPECT_EQ(three.chosen(), (Indices{6, 7})) << "a version that fails as a whole is the judge's business";
}

TEST(Endpoints, ANewOneBeginsSlowly) {
  VersionConfig config = three();
  config.slow_start = std::chrono::seconds(10);
  Three starting(config);
  starting.at(0).since = kNow - std::chrono::seconds(5);
  starting.at(1).in_flight = starting.at(2).in_flight = 1;
  EXPECT_EQ(starting.chosen(), (Indices{5, 6, 7})) << "half way: one in flight counts as two";
  starting.at(0).in_flight = 1;
  EXPECT_EQ(starting.chosen(), (Indices{6, 7}));
  EXPECT_EQ(starting.chosen(nullptr, kNow + std::chrono::seconds(5)), (Indices{5, 6, 7}));
}

TEST(Endpoints, ANewOneWaitsForItsCheckUnlessThereIsNobodyElse) {
  Three three;
  three.endpoints.replace({endpoint(8001), endpoint(8004)});
  EXPECT_EQ(three.chosen(), (Indices{5}));
  EXPECT_EQ(three.endpoints.healthy(), 1u);
  three.endpoints.replace({endpoint(8005), endpoint(8006)});
  EXPECT_EQ(three.chosen(), (Indices{9, 10}));
  EXPECT_EQ(three.endpoints.healthy(), 2u);
}

/// Answers in a time span of two endpoints that work on one request at a time, one of them in a quarter of the other's time, while as many
/// clients as given ask again at once. As a share of what both can do.
double used_capacity(size_t clients) {
  constexpr int64_t kFast = 1, kSlow = 4, kSpan = 40'000;
  VersionConfig config = three();
  config.endpoints.pop_back();
  Three version(config);
  const auto list = version.endpoints.list();
  std::map<const EndpointState*, int64_t> free_at{{list->at(0).get(), 0}, {list->at(1).get(), 0}};  // when its queue is worked off
  std::multimap<int64_t, EndpointState*> ends;
  std::minstd_rand dice(26);
  const auto ask = [&](int64_t now) {
    EndpointState* chosen = version.endpoints.choose(*list, dice(), kNow);
    version.endpoints.begin(*chosen);
    int64_t& until = free_at[chosen];
    until = std::max(until, now) + (chosen == list->at(0).get() ? kFast : kSlow);
    ends.emplace(until, chosen);
  };
  for (size_t i = 0; i < clients; ++i) ask(0);
  int64_t answers = 0;
  for (auto next = ends.begin(); next->first <= kSpan; next = ends.begin()) {
    const auto [now, endpoint] = *next;
    ends.erase(next);
    version.endpoints.end(*endpoint);
    ++answers;
    ask(now);
  }
  return static_cast<double>(answers) / (static_cast<double>(kSpan) / kFast + static_cast<double>(kSpan) / kSlow);
}

TEST(Endpoints, AtSpeedsOfFourToOneBothAreBusyWithoutWeights) {
  for (const size_t clients : {2, 3, 4, 8, 64, 1000}) EXPECT_GE(used_capacity(clients), 0.95) << clients << " clients";
  EXPECT_LT(used_capacity(1), 0.95) << "one client cannot keep two busy";
}

TEST(Endpoints, WhoIsInTheNewListTooStaysWhoItIs) {
  Three three;
  three.at(1).in_flight = 7;
  three.set_healthy(1, false);
  three.endpoints.replace({endpoint(8002), endpoint(8004)});
  EXPECT_EQ(three.at(0).in_flight, 7);
  EXPECT_EQ(three.at(0).index, 6u);
  EXPECT_EQ(three.at(1).index, 8u) << "a number is never used again: it is a unit of evidence";
  EXPECT_EQ(three.endpoints.healthy(), 1u);
  three.endpoints.replace({});
  EXPECT_EQ(three.chosen(), Indices{});
}

}  // namespace
}  // namespace serin::router
