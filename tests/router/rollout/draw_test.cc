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

// ---- several canaries at once ----

std::vector<Candidate> candidates(const std::vector<Spec>& specs, const std::vector<uint32_t>& weights, std::string_view key = {}) {
  std::vector<Candidate> all;
  for (size_t i = 0; i < specs.size(); ++i)
    all.push_back({.spec = &specs[i], .weight_ppm = weights[i], .says = {.cohort = {}, .key = key}, .draw = {}});
  return all;
}

TEST(DrawAmong, EachGetsItsWeightAndIsComparedWithStableAtItsTrueOdds) {
  const std::vector<Spec> specs(3, spec_of(""));
  const std::vector<uint32_t> weights = {50'000, 200'000, 400'000};
  Random random(5);
  std::array<int, 4> got{};
  std::array<int, 3> looks{};
  std::vector<Candidate> of_stable;
  for (int i = 0; i < kDraws; ++i) {
    auto all = candidates(specs, weights);
    const auto taker = draw_among(all, random.next());
    ++got[taker.value_or(3)];
    if (taker) {
      EXPECT_TRUE(all[*taker].draw.look);
      EXPECT_EQ(all[*taker].draw.place, Place::kCanary);
      continue;
    }
    for (size_t each = 0; each < 3; ++each) looks[each] += all[each].draw.look;
    of_stable = std::move(all);
  }
  for (size_t i = 0; i < 3; ++i) {
    expect_share(got[i], weights[i] / 1e6);
    const double odds = weights[i] / (weights[i] + 350'000.);
    EXPECT_NEAR(of_stable[i].draw.weight_ppm / 1e6, odds, 2e-6);
    const int both = got[i] + got[3];
    EXPECT_NEAR(got[i], both * odds, 5 * std::sqrt(both * odds * (1 - odds))) << "the odds that its judge is told";
    EXPECT_NEAR(of_stable[i].draw.look_weight_ppm / 1e6, got[i] / static_cast<double>(got[i] + looks[i]), 0.01);
  }
}

TEST(DrawAmong, OneAloneIsDrawnAsEver) {
  const std::vector<Spec> specs(1, spec_of(""));
  Random random(6);
  for (uint32_t weight : {0u, 50'000u, kAll}) {
    int taken = 0;
    for (int i = 0; i < kDraws; ++i) {
      auto all = candidates(specs, {weight});
      taken += draw_among(all, random.next()).has_value();
      ASSERT_EQ(all[0].draw.weight_ppm, weight);
    }
    expect_share(taken, weight / 1e6);
  }
}

TEST(DrawAmong, AKeyStaysAndAChangeOfOneWeightMovesFewOthers) {
  std::vector<Spec> specs;
  for (const char* salt : {"a", "b"})
    specs.push_back(spec_of(std::string("canary: {version: 2, sticky: {header: x-user, salt: ") + salt + "}}\n"));
  Random random(7);
  int moved = 0;
  std::array<int, 3> got{};
  for (int user = 0; user < 20'000; ++user) {
    const std::string key = std::to_string(user);
    const auto place = [&](uint32_t first) {
      auto all = candidates(specs, {first, 200'000}, key);
      return draw_among(all, random.next()).value_or(2);
    };
    const size_t before = place(100'000);
    for (int again = 0; again < 3; ++again) ASSERT_EQ(place(100'000), before);
    ++got[before];
    const size_t after = place(150'000);
    ASSERT_TRUE(before != 0 || after == 0) << "nobody leaves a canary whose weight rises";
    moved += before == 1 && after != 1;
  }
  EXPECT_NEAR(got[0], 2000, 200);
  EXPECT_NEAR(got[1], 4000, 300);
  EXPECT_NEAR(moved, 4000 * 0.05 / 0.9, 80) << "only those that the first one takes";
}

TEST(DrawAmong, CohortsComeFirst) {
  const std::vector<Spec> specs = {spec_of(""), spec_of("canary: {version: 3, cohort: {header: x-cohort, values: [beta]}}\n")};
  for (uint64_t random = 0; random < 100; ++random) {
    std::vector<Candidate> all = {{.spec = &specs[0], .weight_ppm = 800'000, .says = {}, .draw = {}},
                                  {.spec = &specs[1], .weight_ppm = 1, .says = {.cohort = "beta", .key = {}}, .draw = {}}};
    ASSERT_EQ(draw_among(all, random), 1U);
    EXPECT_FALSE(all[1].draw.drawn);
  }
}

TEST(FitTogether, LowersTheLargestToOneSize) {
  const auto fitted = [](std::vector<uint32_t> weights) {
    fit_together(weights);
    return weights;
  };
  using Weights = std::vector<uint32_t>;
  EXPECT_EQ(fitted({kAll}), Weights({kAll})) << "one alone may have everything";
  EXPECT_EQ(fitted({50'000, 200'000}), Weights({50'000, 200'000}));
  EXPECT_EQ(fitted({500'000, 500'000}), Weights({450'000, 450'000}));
  EXPECT_EQ(fitted({50'000, kAll}), Weights({50'000, 850'000}));
  EXPECT_EQ(fitted({kAll, 0}), Weights({900'000, 0}));
  EXPECT_EQ(fitted({kAll, 100'000, kAll, 800'000}), Weights({266'666, 100'000, 266'666, 266'666}));
  EXPECT_EQ(fitted({450'000, 450'000}), Weights({450'000, 450'000}));
  EXPECT_TRUE(fitted({}).empty());
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
