// Which answers are evidence, and the share they are weighed against.

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

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
  Observation refused{.arm = Arm::kCanary, .weight_ppm = 50'000, .outcome = Outcome::kError, .endpoint = 1, .ending = Ending::kRefused};
  EXPECT_EQ(units.weigh(refused), 0.5) << "one of two endpoints";
  for (int i = 0; i < 100; ++i) EXPECT_EQ(units.weigh(refused), std::nullopt);
  Observation late = refused;
  late.outcome = Outcome::kDeadline;
  EXPECT_EQ(units.weigh(late), std::nullopt) << "the same episode";
  (void)units.weigh(answer(Arm::kCanary, 2, 0, 1));
  EXPECT_EQ(units.weigh(late), 0.5) << "it had answered: a new one";
}

// --- broken answers ---

using std::chrono::milliseconds;

Observation broken(Arm arm, milliseconds after_its_draw) {
  return {.arm = arm,
          .weight_ppm = 50'000,
          .outcome = Outcome::kError,
          .latency = after_its_draw,
          .endpoint = arm == Arm::kCanary ? 1u : 0u,
          .ending = Ending::kBroken};
}

Observation with(Observation observation, Outcome outcome, Ending ending) {
  observation.outcome = outcome;
  observation.ending = ending;
  return observation;
}

/// The shares of the units that this answer settles, and its own.
std::vector<double> shares(Units& units, const Observation& observation, milliseconds at) {
  std::vector<double> all;
  for (const Settled& earlier : units.settle(observation, at)) all.push_back(earlier.unit.share);
  if (const auto own = units.weigh(observation)) all.push_back(own->share);
  return all;
}

class BrokenUnits : public testing::Test {
 protected:
  BrokenUnits() {
    shares(units, good, milliseconds(0));
    shares(units, with(broken(Arm::kStable, milliseconds(5)), Outcome::kOk, Ending::kAnswered), milliseconds(0));
  }
  std::vector<double> at(int ms, const Observation& observation) { return shares(units, observation, milliseconds(ms)); }

  Units units{Guard::Unit::kBatch};
  const Observation cut = broken(Arm::kCanary, milliseconds(5));
  const Observation good = with(cut, Outcome::kNeutral, Ending::kAnswered);  // no unit of its own
  const Observation refused = with(cut, Outcome::kError, Ending::kRefused);
  const std::vector<double> nothing, as_an_error{0.05}, as_an_endpoint{0.5};
};

TEST_F(BrokenUnits, AreErrorsOfRequestsOnceTheEndpointAnswers) {
  EXPECT_EQ(at(100, cut), nothing) << "it waits";
  EXPECT_EQ(at(103, good), nothing) << "sent before the break, or nobody knows";
  EXPECT_EQ(at(106, good), as_an_error) << "drawn after the break, and answered";
  EXPECT_EQ(at(110, good), nothing) << "once";
}

TEST_F(BrokenUnits, AreErrorsWhereARequestInProgressOutlivesThem) {
  EXPECT_EQ(at(100, cut), nothing);
  EXPECT_EQ(at(125, with(broken(Arm::kCanary, milliseconds(90)), Outcome::kOk, Ending::kAnswered)), (std::vector<double>{0.05, 0.05}));
}

TEST_F(BrokenUnits, ProveEachOtherWhereEveryAnswerBreaks) {
  EXPECT_EQ(at(100, cut), nothing);
  for (int ms = 110; ms < 200; ms += 10) EXPECT_EQ(at(ms, cut), as_an_error) << "the process still accepts requests";
}

TEST_F(BrokenUnits, OfAKilledProcessAreOneEventOfItsEndpoint) {
  for (int i = 0; i < 8; ++i) EXPECT_EQ(at(100, cut), nothing) << "all that was in progress";
  EXPECT_EQ(at(103, refused), as_an_endpoint);
  EXPECT_EQ(at(104, cut), nothing) << "one more, from a thread that was slower";
  for (int ms = 105; ms < 2000; ms += 100) EXPECT_EQ(at(ms, refused), nothing) << "the same episode";
  EXPECT_EQ(at(2100, good), nothing);
  EXPECT_EQ(at(2200, refused), as_an_endpoint) << "it had answered: another one";
}

TEST_F(BrokenUnits, WithoutASignOfLifeAreEventsOfTheEndpoint) {
  EXPECT_EQ(at(100, cut), nothing);
  EXPECT_EQ(at(1500, with(good, Outcome::kOk, Ending::kAnswered)), (std::vector<double>{0.5, 0.05})) << "a second is too long";
  EXPECT_EQ(at(5000, cut), nothing);
  EXPECT_EQ(at(7000, cut), as_an_endpoint);
  EXPECT_EQ(at(9000, cut), as_an_endpoint) << "it was connected to in between: not the same episode";
}

TEST_F(BrokenUnits, OfOneMomentAreOneOfTheCanaryAndEachOfStable) {
  const Observation stables = broken(Arm::kStable, milliseconds(5));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(at(100, cut), nothing);
    EXPECT_EQ(at(100, stables), nothing);
  }
  EXPECT_EQ(at(110, good), as_an_error);
  EXPECT_EQ(at(110, with(stables, Outcome::kNeutral, Ending::kAnswered)), std::vector<double>(4, 0.05));
}

TEST_F(BrokenUnits, ADeadlineIsNoSignOfLife) {
  EXPECT_EQ(at(100, cut), nothing);
  EXPECT_EQ(at(150, with(cut, Outcome::kDeadline, Ending::kAnswered)), as_an_endpoint) << "an episode of its own";
  EXPECT_EQ(at(200, refused), nothing) << "the same episode";
}

TEST_F(BrokenUnits, ReportedByAnotherRouterMayBeOlderThanTheyLook) {
  Observation told = cut;
  told.late = kOtherRouter;
  EXPECT_EQ(at(100, cut), nothing);
  EXPECT_EQ(at(140, told), nothing) << "perhaps of the same moment";
  EXPECT_EQ(at(300, told), as_an_error);
}

TEST_F(BrokenUnits, OfAProcessThatNamesAnotherRunAfterwardsAreOneEventOfItsEndpoint) {
  Observation tagged = with(cut, Outcome::kNeutral, Ending::kAnswered);
  uint64_t batch = 0;
  const auto by = [&](uint64_t boot) {
    tagged.batch = BatchId{++batch, 0, 1, boot};
    return tagged;
  };
  for (uint64_t boot : {7, 8}) EXPECT_EQ(at(10, by(boot)), nothing) << "two processes behind one endpoint";
  EXPECT_EQ(at(100, cut), nothing);
  EXPECT_EQ(at(110, by(8)), as_an_error) << "one of them";
  EXPECT_EQ(at(200, cut), nothing);
  EXPECT_EQ(at(210, by(9)), as_an_endpoint) << "it has restarted";
  EXPECT_EQ(at(300, cut), nothing);
  EXPECT_EQ(at(310, by(9)), as_an_error);
}

TEST_F(BrokenUnits, AreSettledByTheQuestionThatFollowsThem) {
  Observation sign{
      .arm = Arm::kCanary, .outcome = Outcome::kNeutral, .latency = milliseconds(2), .endpoint = 1, .drawn = false, .sign = true};
  const auto asked = [&](int ms, Ending ending) {
    sign.ending = ending;
    const auto& settled = units.settle(sign, milliseconds(ms));
    return settled.empty() ? 0.0 : settled[0].unit.share;
  };
  EXPECT_EQ(at(100, cut), nothing);
  EXPECT_EQ(asked(101, Ending::kAnswered), 0.0) << "asked before the break";
  EXPECT_EQ(asked(103, Ending::kAnswered), 0.05);
  EXPECT_EQ(at(200, cut), nothing);
  EXPECT_EQ(asked(203, Ending::kRefused), 0.5);
  EXPECT_EQ(at(300, cut), nothing);
  sign.late = kOtherRouter;
  EXPECT_EQ(asked(303, Ending::kAnswered), 0.05) << "of the router that reported the break";
}

TEST_F(BrokenUnits, KeepTheirOwnWeight) {
  Observation heavier = cut;
  heavier.weight_ppm = 200'000;
  EXPECT_EQ(at(100, heavier), nothing);
  EXPECT_EQ(at(110, good), std::vector<double>{0.2}) << "that of their draw";
}

TEST_F(BrokenUnits, OfACohortAreNoEvidenceButASignOfLife) {
  Observation chosen = cut;
  chosen.drawn = false;
  EXPECT_EQ(units.settle(chosen, milliseconds(100)).size(), 0u);
  EXPECT_EQ(at(110, cut), nothing);
  EXPECT_EQ(units.settle(chosen, milliseconds(120)).size(), 1u);
  EXPECT_EQ(at(130, good), nothing);
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
