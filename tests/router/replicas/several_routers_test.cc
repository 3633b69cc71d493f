// Three routers that share a service, without a network between them: who leads, who follows, and that three judge as fast as one.

#include <gmock/gmock.h>

#include <random>

#include "router/config/split.h"
#include "router/control/services.h"
#include "router/control/sightings.h"
#include "router/store/sqlite_store.h"
#include "runtime/base/log.h"
#include "tests/router/router_fixture.h"

namespace serin::router {
namespace {

using rollout::Arm;
using rollout::Outcome;
using rollout::Phase;

RouterConfig config_of(const std::string& store, int routers) {
  RouterConfig config = digits_config(store);
  if (routers > 0) config.replicas = ReplicasConfig{.max = routers};
  return config;
}

/// A router without its threads: what Controller and Replicas do, the test does.
class RouterAlone {
 public:
  explicit RouterAlone(int routers)
      : config_(config_of(folder_.file("router.db"), routers)), store_(std::move(open_sqlite_store_of(config_.store))) {
    services_ = *open_services(config_, *store_, config_.store + ".weights", metrics_, now());
  }
  ServiceControl& control() { return *services_->all[0]; }
  Result<bool> save() { return control().save(*store_, now()); }
  store::ServiceRecord written() { return store_->load()->at(0); }
  static rollout::Time now() { return rollout::Time::clock::now(); }

 private:
  static std::unique_ptr<store::Store> open_sqlite_store_of(const std::string& path) {
    return std::move(store::open_sqlite_store(path)->store);
  }

  TestFolder folder_;
  metrics::Registry metrics_;
  RouterConfig config_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Services> services_;
};

struct Group {
  RouterAlone leader{3}, follower{3}, third{3};

  Group() {
    leader.control().lead(true, leader.now());
    agree();
  }
  /// What the leader has written is followed by all, and the leader knows.
  void agree() {
    ASSERT_TRUE(leader.save());
    const uint64_t change = leader.control().saved_change();
    for (RouterAlone* other : {&follower, &third}) EXPECT_TRUE(other->control().adopt(leader.written(), /*agreed=*/true, other->now()));
    leader.control().let_rise(true, change, "");
  }
  void start() {
    ASSERT_TRUE(leader.control().start(spec_of("2", {5, 50}), {}, leader.now()));
    agree();
  }
  void pass_on() {
    for (RouterAlone* other : {&follower, &third}) {
      const Sightings seen = other->control().take_sightings();
      if (!seen.empty())
        leader.control().observe_of_others(decode(encode({.sender = "x/1", .sequence = 1, .sightings = seen}))->sightings, leader.now());
    }
  }
  void tell() {
    for (RouterAlone* from : {&leader, &follower, &third})
      for (const store::Trip& trip : from->control().take_trips())
        for (RouterAlone* to : {&leader, &follower, &third})
          if (to != from) to->control().trip(trip, to->now());
  }
};

Phase phase_of(RouterAlone& router) { return router.control().status(router.now()).rollout->state.phase; }

class SeveralRouters : public ::testing::Test {
 protected:
  void SetUp() override { log::configure({.level = log::Level::kOff}); }
};

TEST_F(SeveralRouters, FollowersTakeTheWeightThatWasAgreedOn) {
  Group group;
  group.start();
  for (RouterAlone* router : {&group.leader, &group.follower, &group.third}) EXPECT_EQ(router->control().split().weight_ppm, 50'000U);
  EXPECT_EQ(group.leader.control().split(), group.follower.control().split());
}

TEST_F(SeveralRouters, WhatIsNotAgreedOnRaisesNothing) {
  Group group;
  ASSERT_TRUE(group.leader.control().start(spec_of("2", {5}), {}, group.leader.now()));
  EXPECT_EQ(group.leader.control().split().weight_ppm, 0U) << "not written yet";
  ASSERT_TRUE(group.leader.save());
  EXPECT_FALSE(group.follower.control().adopt(group.leader.written(), /*agreed=*/false, group.follower.now()));
  EXPECT_EQ(group.follower.control().split().weight_ppm, 0U);
  EXPECT_TRUE(group.follower.control().adopt(group.leader.written(), /*agreed=*/true, group.follower.now()));
  EXPECT_EQ(group.follower.control().split().weight_ppm, 50'000U);
}

TEST_F(SeveralRouters, OnlyTheLeaderRaisesAndOnlyOnceAllFollow) {
  Group group;
  group.start();
  const auto refused = group.follower.control().set_weight(100'000, {}, group.follower.now());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  ASSERT_TRUE(group.leader.control().set_weight(100'000, {}, group.leader.now()));
  ASSERT_TRUE(group.leader.save());
  group.leader.control().let_rise(false, group.leader.control().saved_change(), "router 'c'");
  const auto early = group.leader.control().set_weight(200'000, {}, group.leader.now());
  ASSERT_FALSE(early);
  EXPECT_THAT(early.error().message, ::testing::HasSubstr("router 'c'"));
  group.agree();
  EXPECT_TRUE(group.leader.control().set_weight(200'000, {}, group.leader.now()));
}

TEST_F(SeveralRouters, AStepWaitsForTheOthers) {
  Group group;
  group.start();
  group.leader.control().let_rise(false, group.leader.control().saved_change(), "router 'c'");
  const auto answers = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const Split split = group.leader.control().split();
      group.leader.control().observe(answer(split, i % 2 ? Arm::kCanary : Arm::kStable, Outcome::kOk, static_cast<uint64_t>(i)),
                                     group.leader.now());
    }
  };
  answers(30'000);  // more than any certificate asks for
  EXPECT_EQ(group.leader.control().status(group.leader.now()).rollout->state.step, 0);
  group.agree();
  answers(2);
  EXPECT_EQ(group.leader.control().status(group.leader.now()).rollout->state.step, 1);
}

TEST_F(SeveralRouters, AVerdictOfOneActsAtAllAndIsRemembered) {
  Group group;
  group.start();
  RouterAlone& alone = group.third;
  for (uint64_t i = 0; phase_of(alone) != Phase::kRolledBack; ++i) {
    ASSERT_LT(i, 1000U);
    alone.control().observe(answer(alone.control().split(), Arm::kCanary, Outcome::kError, i), alone.now());
  }
  EXPECT_EQ(alone.control().split().weight_ppm, 0U) << "at once, whoever agrees";
  EXPECT_FALSE(alone.control().adopt(group.leader.written(), /*agreed=*/true, alone.now()))
      << "what the leader wrote before raises nothing";
  EXPECT_EQ(alone.control().split().weight_ppm, 0U);
  group.tell();
  for (RouterAlone* router : {&group.leader, &group.follower}) {
    EXPECT_EQ(phase_of(*router), Phase::kRolledBack);
    EXPECT_EQ(router->control().split().weight_ppm, 0U);
  }
  EXPECT_TRUE(group.leader.control().take_trips().empty()) << "what was heard is not told again";
  group.agree();
  EXPECT_EQ(group.leader.written().rollout->report.state.cause, "err");
}

TEST_F(SeveralRouters, ALateVerdictDoesNotTouchTheNextRollout) {
  Group group;
  group.start();
  ASSERT_TRUE(group.third.control().abort({}, group.third.now()));
  const auto late = group.third.control().take_trips();
  ASSERT_EQ(late.size(), 1U);
  ASSERT_TRUE(group.leader.control().abort({}, group.leader.now()));
  group.agree();
  group.start();
  EXPECT_FALSE(group.follower.control().trip(late[0], group.follower.now()));
  EXPECT_EQ(group.follower.control().split().weight_ppm, 50'000U);
}

TEST_F(SeveralRouters, ALeaderThatLosesItsPlaceRaisesNothingThatItHadBegun) {
  Group group;
  group.start();
  ASSERT_TRUE(group.leader.control().set_weight(400'000, {}, group.leader.now()));  // not written: the lease was over
  group.leader.control().lead(false, group.leader.now());
  ASSERT_TRUE(group.leader.save());  // to its own copy
  EXPECT_EQ(group.leader.control().split().weight_ppm, 50'000U);
  group.follower.control().lead(true, group.follower.now());
  ASSERT_TRUE(group.follower.save());
  EXPECT_TRUE(group.leader.control().adopt(group.follower.written(), /*agreed=*/true, group.leader.now()));
  EXPECT_EQ(group.leader.control().split(), group.follower.control().split());
}

// ---- three judge as fast as one ----

/// Requests of all routers until the canary is out; answers go round between them.
template <class Observe>
uint64_t requests_until_out(Observe&& observe, std::mt19937_64& random) {
  const auto chance = [&](double p) { return static_cast<double>(random() >> 11) * 0x1p-53 < p; };
  for (uint64_t requests = 1; requests < 200'000; ++requests) {
    const bool canary = chance(0.05);
    if (observe(requests, canary ? Arm::kCanary : Arm::kStable, chance(canary ? 0.05 : 0.001) ? Outcome::kError : Outcome::kOk))
      return requests;
  }
  return 200'000;
}

TEST_F(SeveralRouters, ThreeNeedAtMostAFifthMoreRequestsThanOne) {
  constexpr int kRuns = 120;
  uint64_t one = 0, three = 0;
  for (uint64_t seed = 0; seed < kRuns; ++seed) {
    RouterAlone alone(0);
    ASSERT_TRUE(alone.control().start(spec_of("2", {5, 50}), {}, alone.now()));
    ASSERT_TRUE(alone.save());
    ASSERT_TRUE(alone.control().pause({}, alone.now()));  // the steps would end it at another weight
    std::mt19937_64 random(seed);
    one += requests_until_out(
        [&](uint64_t request, Arm arm, Outcome outcome) {
          return alone.control().observe(answer(alone.control().split(), arm, outcome, request), alone.now());
        },
        random);

    Group group;
    group.start();
    ASSERT_TRUE(group.leader.control().pause({}, group.leader.now()));
    group.agree();
    const std::array routers = {&group.leader, &group.follower, &group.third};
    random.seed(seed);
    three += requests_until_out(
        [&](uint64_t request, Arm arm, Outcome outcome) {
          ServiceControl& at = routers[request % 3]->control();
          at.observe(answer(at.split(), arm, outcome, request), group.leader.now());
          if (request % 10 == 0) group.pass_on();
          return group.leader.control().split().weight_ppm == 0 || group.follower.control().split().weight_ppm == 0 ||
                 group.third.control().split().weight_ppm == 0;
        },
        random);
  }
  const double ratio = static_cast<double>(three) / static_cast<double>(one);
  std::printf("requests until the canary is out, mean of %d: one router %.0f, three %.0f (x%.2f)\n", kRuns,
              static_cast<double>(one) / kRuns, static_cast<double>(three) / kRuns, ratio);
  EXPECT_LE(ratio, 1.2);
  EXPECT_GT(one, kRuns * 100U);
}

}  // namespace
}  // namespace serin::router
