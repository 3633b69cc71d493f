// Non-inferiority: how many good answers it takes, and how rarely a worse canary gets it.

#include "router/rollout/certificate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "simulation.h"

namespace serin::rollout {
namespace {

/// Canary requests until certified, stable's rate being known.
std::vector<int> delays(double stable, double canary, double margin, int runs) {
  Random random(11);
  std::vector<int> counts;
  for (int run = 0; run < runs; ++run) {
    RateCertificate certificate(margin, 0.95);
    int n = 0;
    for (; !certificate.certified(); ++n) certificate.observe(random.chance(canary), stable, stable);
    counts.push_back(n);
  }
  std::ranges::sort(counts);
  return counts;
}

TEST(RateCertificate, TakesAsLongAsDesigned) {
  struct Row {
    double stable, margin;
    int median, p90;
  };
  for (const Row& row : {Row{0, 0.005, 610, 610}, Row{0.001, 0.005, 598, 1672}, Row{0.001, 0.01, 298, 538}, Row{0.01, 0.01, 780, 1820}}) {
    const auto counts = delays(row.stable, row.stable, row.margin, 4000);
    const int median = counts[counts.size() / 2], p90 = counts[counts.size() * 9 / 10];
    std::printf("  margin %g %%, stable at %g %%: median %d (table %d), p90 %d (table %d)\n", 100 * row.margin, 100 * row.stable, median,
                row.median, p90, row.p90);
    EXPECT_NEAR(median, row.median, std::max(1.0, 0.15 * row.median));
    EXPECT_NEAR(p90, row.p90, std::max(1.0, 0.15 * row.p90));
  }
}

TEST(RateCertificate, IsRarelyGivenToACanaryThatIsWorseByTheMargin) {
  Random random(12);
  int wrong = 0;
  constexpr int kRuns = 1000;
  for (int run = 0; run < kRuns; ++run) {
    RateCertificate certificate(0.01, 0.95);
    StableRate stable;
    for (int n = 0; n < 20'000 && !certificate.certified(); ++n) {
      random.chance(0.5) ? certificate.observe(random.chance(0.02), stable) : stable.observe(random.chance(0.01));
    }
    wrong += certificate.certified();
  }
  EXPECT_LE(wrong, kRuns * 6 / 100) << "beta of 5 % and 1 % for stable's rate";
}

TEST(RateCertificate, WaitsForAStableThatIsAllBad) {
  RateCertificate certificate(0.01, 0.95);
  StableRate stable;
  for (int i = 0; i < 1000; ++i) stable.observe(true);
  for (int i = 0; i < 1000; ++i) certificate.observe(true, stable);
  EXPECT_FALSE(certificate.certified());
}

TEST(StableRate, HasALowerBoundThatHoldsAtEveryMoment) {
  Random random(13);
  int broken = 0;
  constexpr int kRuns = 1000;
  for (int run = 0; run < kRuns; ++run) {
    StableRate stable;
    bool held = true;
    for (int n = 0; n < 5000; ++n) {
      stable.observe(random.chance(0.05));
      held = held && stable.lower_bound() <= 0.05;
    }
    broken += !held;
  }
  EXPECT_LE(broken, kRuns / 100);
}

TEST(StableRate, IsBoundedTightlyOnceMuchIsKnown) {
  StableRate stable;
  EXPECT_EQ(stable.lower_bound(), 0);
  for (int i = 0; i < 100'000; ++i) stable.observe(i % 100 == 0);
  EXPECT_NEAR(stable.lower_bound(), 0.01, 0.0015);
}

// ln(20) / 0.1 = 30
TEST(AgreementCertificate, IsGivenAfterSoManyAgreeingPairs) {
  AgreementCertificate certificate(0.1, 0.95);
  int pairs = 0;
  for (; !certificate.certified(); ++pairs) certificate.observe(false);
  EXPECT_NEAR(pairs, 30, 1);
}

TEST(AgreementCertificate, IsGivenToABetterModelThatDisagreesNowAndThen) {
  Random random(14);
  std::vector<int> counts;
  for (int run = 0; run < 500; ++run) {
    AgreementCertificate certificate(0.1, 0.95);
    int pairs = 0;
    for (; !certificate.certified() && pairs < 100'000; ++pairs) certificate.observe(random.chance(0.03));
    counts.push_back(pairs);
  }
  std::ranges::sort(counts);
  EXPECT_LE(counts[counts.size() / 2], 250);
}

TEST(AgreementCertificate, IsRarelyGivenAtTheLimit) {
  Random random(15);
  int wrong = 0;
  for (int run = 0; run < 1000; ++run) {
    AgreementCertificate certificate(0.1, 0.95);
    for (int pairs = 0; pairs < 5000 && !certificate.certified(); ++pairs) certificate.observe(random.chance(0.1));
    wrong += certificate.certified();
  }
  EXPECT_LE(wrong, 50 + 20);
}

TEST(Margins, TaperWithExposure) {
  EXPECT_EQ(tapered_margins(10'000).errors, 0.02);
  EXPECT_EQ(tapered_margins(10'000).latency, 0.05);
  EXPECT_EQ(tapered_margins(50'000).errors, 0.01);
  EXPECT_EQ(tapered_margins(50'000).latency, 0.02);
  EXPECT_EQ(tapered_margins(200'000).errors, 0.005);
  EXPECT_EQ(tapered_margins(kAll).latency, 0.01);
}

}  // namespace
}  // namespace serin::rollout
