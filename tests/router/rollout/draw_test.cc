// Who goes where: cohorts, sticky keys, the matched baseline, and how many bodies are looked at.

#include "router/rollout/draw.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "simulation.h"

namespace serin::rollout {
namespace {

constexpr int kDraws = 200'000;

struct Counts {
  std::array<int, 3> places{};
  int looks_at_stable = 0, looks_at_canary = 0, stable_evidence = 0;
};

Counts count(const Spec& spec, uint32_t weight_ppm, const Says& says = {}) {
  Random random(3);
  Counts counts;
  for (int i = 0; i < kDraws; ++i) {
    const Draw draw = draw_request(spec, weight_ppm, says, random.next());
    ++counts.places[static_cast<size_t>(draw.place)];
    (draw.arm() == Arm::kCanary ? counts.looks_at_canary : counts.looks_at_stable) += draw.look;
    counts.stable_evidence += draw.arm() == Arm::kStable && draw.evidence;
  }
  return counts;
}

void expect_share(int count, double share) { EXPECT_NEAR(count, kDraws * share, 5 * std::sqrt(kDraws * share * (1 - share)) + 1); }

TEST(Draw, SplitsByWeight) {
  for (uint32_t weight : {0u, 1u, 10'000u, 500'000u, kAll}) {
    const Counts counts = count(spec_of(""), weight);
    expect_share(counts.places[2], static_cast<double>(weight) / kAll);
    EXPECT_EQ(counts.places[1], 0);
  }
}

TEST(Draw, AKeyStaysWhereItIsUntilTheWeightReachesIt) {
  const Spec spec = spec_of("canary: {version: 2, sticky: {header: x-user, salt: a}}\n");
  Random random(1);
  int at_five = 0;
  for (int user = 0; user < 10'000; ++user) {
    const std::string key = "user " + std::to_string(user);
    bool was_canary = false;
    for (uint32_t weight : {10'000u, 50'000u, 200'000u, 500'000u, kAll}) {
      const Draw first = draw_request(spec, weight, {.key = key}, random.next());
      for (int again = 0; again < 3; ++again)
        ASSERT_EQ(draw_request(spec, weight, {.key = key}, random.next()).place, first.place) << "sticky on both arms";
      ASSERT_TRUE(first.key);
      ASSERT_GE(first.arm() == Arm::kCanary, was_canary) << "nobody goes back while the weight rises";
      was_canary = first.arm() == Arm::kCanary;
      at_five += weight == 50'000u && was_canary;
    }
    ASSERT_TRUE(was_canary);
  }
  EXPECT_NEAR(at_five, 500, 110);
}

TEST(Draw, AnotherSaltChoosesOtherUsers) {
  const Spec one = spec_of("canary: {version: 2, sticky: {cookie: session, salt: a}}\n");
  const Spec other = spec_of("canary: {version: 2, sticky: {cookie: session, salt: b}}\n");
  int both = 0;
  for (int user = 0; user < 10'000; ++user) {
    const std::string key = std::to_string(user);
    both += draw_request(one, 100'000, {.key = key}, 1).arm() == Arm::kCanary &&
            draw_request(other, 100'000, {.key = key}, 1).arm() == Arm::kCanary;
  }
  EXPECT_NEAR(both, 100, 50) << "as independent choices meet";
}

TEST(Draw, WithoutItsKeyARequestIsDrawnLikeAnyOther) {
  const Spec spec = spec_of("canary: {version: 2, sticky: {header: x-user}}\n");
  expect_share(count(spec, 50'000).places[2], 0.05);
  EXPECT_FALSE(draw_request(spec, 50'000, {}, 1).key);
}

// Bad input R13 (tests/README.md): a header reaches the canary only where the rollout says so.
TEST(Draw, R13ACohortIsWhoTheSpecificationNames) {
  const Spec spec = spec_of("canary: {version: 2, cohort: {header: x-cohort, values: [beta, staff]}}\n");
  const Draw beta = draw_request(spec, 1, {.cohort = "beta"}, 77);
  EXPECT_EQ(beta.place, Place::kCanary);
  EXPECT_FALSE(beta.drawn) << "not random: compared with nobody";
  for (const char* other : {"", "Beta", "beta ", "beta,staff", "gamma"})
    EXPECT_NE(draw_request(spec, 1, {.cohort = other}, 77).place, Place::kCanary) << other;
  EXPECT_EQ(draw_request(spec, 0, {.cohort = "beta"}, 77).place, Place::kStable) << "a canary without a weight serves nobody";
  EXPECT_NE(draw_request(spec_of(""), 1, {.cohort = "beta"}, 77).place, Place::kCanary) << "no cohort is configured";
}

TEST(Draw, TheBaselineArmMatchesTheCanary) {
  const Spec spec = spec_of("canary: {version: 2, baseline: 1-fresh}\n");
  const Counts five = count(spec, 50'000);
  expect_share(five.places[1], 0.05);
  expect_share(five.places[2], 0.05);
  EXPECT_EQ(five.stable_evidence, five.places[1]) << "what stays on the old replicas is no evidence";
  EXPECT_EQ(draw_request(spec, 50'000, {}, 1).weight_ppm, kAll / 2);
  const Counts eighty = count(spec, 800'000);
  expect_share(eighty.places[1], 0.2);
  EXPECT_EQ(eighty.places[0], 0);
  EXPECT_EQ(draw_request(spec, 800'000, {}, 1).weight_ppm, 800'000u);
  EXPECT_EQ(count(spec, kAll).places[1], 0);
}

TEST(Draw, LooksAtAllOfTheCanarysBodiesAndAtEnoughOfStables) {
  for (const auto& [weight, share] : {std::pair{10'000u, 0.05}, {50'000u, 4 * 0.05 / 0.95}, {200'000u, 1.0}, {500'000u, 1.0}}) {
    const Counts counts = count(spec_of(""), weight);
    EXPECT_EQ(counts.looks_at_canary, counts.places[2]);
    EXPECT_NEAR(counts.looks_at_stable, counts.places[0] * share, 0.03 * counts.places[0] * share);
    const Draw draw = draw_request(spec_of(""), weight, {}, 1);
    EXPECT_NEAR(static_cast<double>(draw.look_weight_ppm) / kAll,
                static_cast<double>(counts.looks_at_canary) / (counts.looks_at_canary + counts.looks_at_stable), 0.01);
  }
}

TEST(Draw, TheCookieIsFoundAmongOthers) {
  EXPECT_EQ(cookie_value("a=1; session=abc; b=2", "session"), "abc");
  EXPECT_EQ(cookie_value("session=abc", "session"), "abc");
  EXPECT_EQ(cookie_value("xsession=abc;  session=; session=late", "session"), "");
  EXPECT_EQ(cookie_value("sessions=1; session", "session"), "");
  EXPECT_EQ(cookie_value("", "session"), "");
  EXPECT_EQ(cookie_value(";;;=;", "session"), "");
}

}  // namespace
}  // namespace serin::rollout
