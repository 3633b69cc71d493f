// Which answers are evidence, and the share they are weighed against.

#include <gtest/gtest.h>

#include "router/rollout/representative.h"
#include "simulation.h"

namespace serin::rollout {
namespace {

Observation answer(Arm arm, uint64_t batch, uint32_t i, uint32_t n, uint32_t weight_ppm = 50'000) {
  return {.arm = arm, .weight_ppm = weight_ppm, .batch = BatchId{batch, i, n}, .endpoint = arm == Arm::kCanary ? 1u : 0u};
}

TEST(Representative, IsOneOfEveryBatchAndEveryPlaceAlike) {
  std::array<int, 8> places{};
  for (uint64_t batch = 0; batch < 80'000; ++batch) {
    int found = 0;
    for (uint32_t i = 0; i < 8; ++i) {
      if (!is_representative({batch, i, 8})) continue;
      ++found;
      ++places[i];
    }
    ASSERT_EQ(found, 1);
  }
  for (int count : places) EXPECT_NEAR(count, 10'000, 500);
}

TEST(Representative, SurvivesABackendThatCannotCount) {
  EXPECT_TRUE(is_representative({1, 0, 0})) << "a batch of none is a batch of one";
  EXPECT_FALSE(is_representative({1, 9, 4}));
  Units units(Guard::Unit::kBatch);
  for (uint64_t batch = 0; batch < 10'000; ++batch) (void)units.weigh(answer(Arm::kStable, batch, ~0u, ~0u));
}

TEST(Units, WhereEverythingRidesAloneTheShareIsTheDrawnWeight) {
  Units units(Guard::Unit::kBatch);
  EXPECT_EQ(units.weigh(answer(Arm::kCanary, 1, 0, 1, 10'000)), 0.01) << "from the first answer on";
  for (uint64_t batch = 2; batch < 3000; ++batch) EXPECT_EQ(units.weigh(answer(Arm::kStable, batch, 0, 1, 10'000)), 0.01);
  EXPECT_EQ(units.weigh(answer(Arm::kCanary, 9000, 0, 1, 500'000)), 0.5) << "a new weight counts at once";
}

// 5 % of the requests in batches of one beside batches of eight: 0.05 / (0.05 + 0.95 / 8) of the batches.
TEST(Units, AnArmThatRidesAloneHasMoreOfTheBatches) {
  Units units(Guard::Unit::kBatch);
  Random random(3);
  uint64_t batch = 0;
  uint32_t place = 0;
  double last = 0;
  uint64_t canary_units = 0, all_units = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::optional<Unit> unit;
    const bool canary = random.chance(0.05);
    if (canary) {
      unit = units.weigh(answer(Arm::kCanary, 1'000'000'000 + static_cast<uint64_t>(i), 0, 1));
    } else {
      unit = units.weigh(answer(Arm::kStable, batch, place, 8));
      if (++place == 8) place = 0, ++batch;
    }
    if (!unit) continue;
    last = unit->share;
    ++all_units;
    canary_units += canary;
  }
  const double expected = 0.05 / (0.05 + 0.95 / 8);
  EXPECT_NEAR(last, expected, 1e-6);
  EXPECT_NEAR(static_cast<double>(canary_units) / static_cast<double>(all_units), expected, 0.01) << "and that is what is counted";
}

TEST(Units, AFewAnswersOfTheCanaryRaiseTheShareRatherThanLowerIt) {
  Units units(Guard::Unit::kBatch);
  for (uint64_t batch = 0; batch < 100; ++batch)
    for (uint32_t i = 0; i < 8; ++i) (void)units.weigh(answer(Arm::kStable, batch, i, 8));
  uint32_t place = 0;
  while (!is_representative({5000, place, 8})) ++place;
  const auto unit = units.weigh(answer(Arm::kCanary, 5000, place, 8));
  ASSERT_TRUE(unit);
  EXPECT_GT(unit->share, 0.05);
}

// A stall: what usually rides alone comes in one batch. Each of stable's answers is the unit that it would have been; the canary's batch is one.
TEST(Units, ABatchOfStablesThatIsLargerThanUsualCountsAnswerByAnswer) {
  Units units(Guard::Unit::kBatch);
  for (uint64_t batch = 0; batch < 2000; ++batch) (void)units.weigh(answer(Arm::kStable, batch, 0, 1));
  double stable = 0;
  int representatives = 0;
  for (uint32_t i = 0; i < 20; ++i) {
    const auto unit = units.weigh(answer(Arm::kStable, 5000, i, 20));
    ASSERT_TRUE(unit);
    stable += unit->count;
    representatives += unit->representative;
  }
  EXPECT_NEAR(stable, 20, 0.3);
  EXPECT_EQ(representatives, 1) << "where good and bad answers are counted the batch is still one";
  double canary = 0;
  for (uint32_t i = 0; i < 20; ++i)
    if (const auto unit = units.weigh(answer(Arm::kCanary, 6000, i, 20))) canary += unit->count;
  EXPECT_EQ(canary, 1);
}

TEST(Units, ABatchOfTheUsualSizeIsOne) {
  for (uint32_t n : {2u, 3u, 7u, 8u, 32u}) {
    Units units(Guard::Unit::kBatch);
    double stable = 0;
    for (uint64_t batch = 0; batch < 2000; ++batch)
      for (uint32_t i = 0; i < n; ++i)
        if (const auto unit = units.weigh(answer(Arm::kStable, batch, i, n))) stable += unit->count;
    EXPECT_EQ(stable, 2000) << n;
  }
}

TEST(Units, ADeadEndpointIsOneEpisode) {
  Units units(Guard::Unit::kBatch);
  (void)units.weigh(answer(Arm::kStable, 1, 0, 1));
  Observation reset{.arm = Arm::kCanary, .weight_ppm = 50'000, .outcome = Outcome::kError, .endpoint = 1, .answered = false};
  EXPECT_EQ(units.weigh(reset), 0.5) << "one of two endpoints";
  for (int i = 0; i < 100; ++i) EXPECT_EQ(units.weigh(reset), std::nullopt);
  Observation late = reset;
  late.outcome = Outcome::kDeadline;
  EXPECT_EQ(units.weigh(late), std::nullopt) << "the same episode";
  (void)units.weigh(answer(Arm::kCanary, 2, 0, 1));
  EXPECT_EQ(units.weigh(late), 0.5) << "it had answered: a new one";
}

TEST(Units, AnswersOfBackendsThatNameNoBatchesCountOneByOne) {
  Units units(Guard::Unit::kBatch);
  const Observation refused{.arm = Arm::kCanary, .weight_ppm = 200'000, .outcome = Outcome::kError, .endpoint = 1};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(units.weigh(refused), 0.2);
}

TEST(Units, ByRequestEveryAnswerCounts) {
  Units units(Guard::Unit::kRequest);
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(units.weigh(answer(Arm::kCanary, 7, i, 8)), 0.05);
}

}  // namespace
}  // namespace serin::rollout
