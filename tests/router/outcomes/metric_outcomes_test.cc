// What a metric concludes from reports: winners, draws, nothing; and that it can be written and read at any moment.

#include "router/outcomes/metric_outcomes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <map>

#include "runtime/base/stable_hash.h"

namespace serin::router {
namespace {

using testing::HasSubstr;
using Shares = std::vector<std::pair<std::string, uint32_t>>;

/// Draws versions and reports their outcomes.
class Experiment {
 public:
  explicit Experiment(uint64_t seed) : state_(mix(seed)) {}
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  uint64_t next() { return mix(state_ += kGolden); }
  Assignment draw(const Shares& shares) {
    Assignment drawn{.shares = shares, .id = next()};
    double point = uniform() * 1e6;
    for (const auto& [version, ppm] : shares) {
      drawn.version = version;
      if ((point -= ppm) < 0) break;
    }
    return drawn;
  }
  /// Outcomes that are 1 with the probability that `rates` has for the version.
  void report(MetricOutcomes& metric, const Shares& shares, const std::map<std::string, double>& rates, int count) {
    for (int i = 0; i < count; ++i) {
      const Assignment drawn = draw(shares);
      ASSERT_TRUE(metric.add(drawn, uniform() < rates.at(drawn.version) ? 1 : 0).value());
    }
  }

 private:
  uint64_t state_;
};

const Shares kHalves = {{"1", 500'000}, {"2", 500'000}};
const Shares kThirds = {{"1", 400'000}, {"2", 300'000}, {"3", 300'000}};
const std::vector<std::string> kVersions = {"1", "2", "3"};

MetricOutcomes conversion() { return {{.name = "conversion"}, kVersions}; }

TEST(MetricOutcomes, BeginWithNothing) {
  MetricOutcomes metric = conversion();
  const MetricSummary summary = metric.summary();
  EXPECT_EQ(summary.verdict, OutcomeVerdict::kNoReports);
  EXPECT_TRUE(summary.versions.empty() && summary.comparisons.empty());
  EXPECT_FALSE(summary.winner || summary.leading);
  EXPECT_THAT(summary.text, HasSubstr("no outcome"));
}

TEST(MetricOutcomes, TheBetterVersionWins) {
  MetricOutcomes metric = conversion();
  Experiment experiment(1);
  experiment.report(metric, kHalves, {{"1", 0.3}, {"2", 0.4}}, 100);
  EXPECT_EQ(metric.summary().verdict, OutcomeVerdict::kUndecided);
  experiment.report(metric, kHalves, {{"1", 0.3}, {"2", 0.4}}, 5000);
  const MetricSummary summary = metric.summary();
  EXPECT_EQ(summary.verdict, OutcomeVerdict::kWinner);
  EXPECT_EQ(summary.winner, "2");
  EXPECT_EQ(summary.leading, "2");
  EXPECT_EQ(summary.reports, 5100U);
  ASSERT_EQ(summary.comparisons.size(), 1U);
  const OutcomeComparison& pair = summary.comparisons[0];
  EXPECT_EQ(pair.version + pair.than, "21");
  EXPECT_NEAR(pair.difference, 0.1, 0.03);
  EXPECT_GT(pair.low, 0);
  EXPECT_NEAR(*summary.versions[0].mean, 0.3, 0.03);
  EXPECT_THAT(summary.text, HasSubstr("2 is best"));
}

TEST(MetricOutcomes, LowerMayBeBetterAndTheUnitIsTheUsers) {
  MetricOutcomes metric({.name = "minutes", .higher_is_better = false, .least = 10, .most = 60}, kVersions);
  Experiment experiment(2);
  for (int i = 0; i < 4000; ++i) {
    const Assignment drawn = experiment.draw(kHalves);
    ASSERT_TRUE(metric.add(drawn, 10 + 20 * experiment.uniform() + (drawn.version == "2" ? 3 : 0)).value());
  }
  const MetricSummary summary = metric.summary();
  EXPECT_EQ(summary.winner, "1");
  EXPECT_NEAR(summary.comparisons[0].difference, 3, 0.7);
  EXPECT_NEAR(*summary.versions[0].mean + *summary.versions[1].mean, 43, 1);
}

TEST(MetricOutcomes, OfThreeVersionsTheOneThatIsBeatenByNoneWins) {
  MetricOutcomes metric = conversion();
  Experiment experiment(3);
  experiment.report(metric, kThirds, {{"1", 0.3}, {"2", 0.3}, {"3", 0.5}}, 4000);
  const MetricSummary summary = metric.summary();
  EXPECT_EQ(summary.comparisons.size(), 3U);
  EXPECT_EQ(summary.winner, "3") << "which of the two others is better does not matter";
}

// A series of canaries: 3 was never drawn beside 1.
TEST(MetricOutcomes, AVersionThatLostLongAgoNeedNotBeBeatenAgain) {
  MetricOutcomes metric = conversion();
  Experiment experiment(4);
  experiment.report(metric, kHalves, {{"1", 0.2}, {"2", 0.4}}, 3000);
  experiment.report(metric, {{"2", 500'000}, {"3", 500'000}}, {{"2", 0.4}, {"3", 0.6}}, 4000);
  const MetricSummary summary = metric.summary();
  EXPECT_EQ(summary.comparisons.size(), 2U);
  EXPECT_EQ(summary.winner, "3");
}

TEST(MetricOutcomes, AMarginShowsThatNothingMatters) {
  MetricOutcomes metric({.name = "conversion", .margin = 0.1}, kVersions);
  Experiment experiment(5);
  experiment.report(metric, kHalves, {{"1", 0.3}, {"2", 0.3}}, 300);
  EXPECT_EQ(metric.summary().verdict, OutcomeVerdict::kUndecided);
  experiment.report(metric, kHalves, {{"1", 0.3}, {"2", 0.3}}, 4000);
  EXPECT_EQ(metric.summary().verdict, OutcomeVerdict::kNoDifference);
  EXPECT_THAT(metric.summary().text, HasSubstr("no difference of 0.1"));
}

TEST(MetricOutcomes, ReportsThatAreMissingNameNoWinner) {
  MetricOutcomes metric = conversion();
  Experiment experiment(6);
  for (int i = 0; i < 6000; ++i) {
    const Assignment drawn = experiment.draw(kHalves);
    const bool yes = experiment.uniform() < (drawn.version == "2" ? 0.4 : 0.2);
    const bool lost = drawn.version == "2" && i % 5 == 0;
    ASSERT_TRUE(lost || metric.add(drawn, yes ? 1 : 0).value());
  }
  EXPECT_EQ(metric.summary().verdict, OutcomeVerdict::kUnbalanced);
  EXPECT_FALSE(metric.summary().winner);
  EXPECT_THAT(metric.summary().text, HasSubstr("missing more often"));
  MetricOutcomes one_sided = conversion();
  for (uint64_t id = 0; id < 60; ++id) ASSERT_TRUE(one_sided.add({"2", kHalves, id}, 1).value());
  EXPECT_EQ(one_sided.summary().verdict, OutcomeVerdict::kUnbalanced) << "nothing at all of version 1";
}

TEST(MetricOutcomes, AReportCountsOnce) {
  MetricOutcomes metric = conversion();
  EXPECT_TRUE(metric.add({"2", kHalves, 42}, 1).value());
  EXPECT_FALSE(metric.add({"2", kHalves, 42}, 0).value());
  EXPECT_EQ(metric.summary().reports, 1U);
  metric.reset();
  EXPECT_EQ(metric.summary().verdict, OutcomeVerdict::kNoReports);
  EXPECT_TRUE(metric.add({"2", kHalves, 42}, 1).value());
}

TEST(MetricOutcomes, WhatCannotBeCountedIsRefused) {
  MetricOutcomes metric = conversion();
  for (const double value : {-0.1, 1.1, 1e300, std::nan("")}) {
    const auto refused = metric.add({"2", kHalves, 42}, value);
    ASSERT_FALSE(refused.has_value()) << value;
    EXPECT_THAT(refused.error().message, HasSubstr("from 0 to 1"));
  }
  const auto unknown = metric.add({"9", {{"1", 500'000}, {"9", 500'000}}, 43}, 1);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_THAT(unknown.error().message, HasSubstr("no version '9'"));
  EXPECT_TRUE(metric.add({"1", {{"1", 500'000}, {"9", 500'000}}, 43}, 1).value()) << "9 was removed from router.yaml";
  EXPECT_TRUE(metric.summary().comparisons.empty());
}

/// How often any interval of three versions ever excludes its truth.
TEST(MetricOutcomes, TheConfidenceHoldsForAllVersionsTogether) {
  const bool is_long = std::getenv("SERIN_LONG") != nullptr;
  const int runs = is_long ? 500 : 60, steps = is_long ? 100 : 40;
  int missed = 0;
  for (int run = 0; run < runs; ++run) {
    MetricOutcomes metric = conversion();
    Experiment experiment(static_cast<uint64_t>(run) + 1000);
    bool miss = false;
    for (int step = 0; step < steps && !miss; ++step) {
      experiment.report(metric, kThirds, {{"1", 0.2}, {"2", 0.2}, {"3", 0.25}}, 50);
      for (const OutcomeComparison& pair : metric.summary().comparisons) {
        const double truth = pair.version == "3" ? 0.05 : 0;
        miss = miss || truth < pair.low || truth > pair.high;
      }
    }
    missed += miss ? 1 : 0;
  }
  EXPECT_LE(missed, 0.05 * runs);
  fmt::print("three versions: {} of {} runs of {} outcomes missed a truth (looked at every 50)\n", missed, runs, 50 * steps);
}

TEST(MetricOutcomes, AreReadAsTheyWereWritten) {
  MetricOutcomes metric = conversion(), again = conversion();
  Experiment experiment(7);
  experiment.report(metric, kThirds, {{"1", 0.3}, {"2", 0.35}, {"3", 0.4}}, 2500);
  ASSERT_TRUE(again.restore(metric.state()).value());
  for (uint64_t chunk = again.ids().first_chunk(); chunk < again.ids().full_chunks(); ++chunk)
    ASSERT_TRUE(again.restore_chunk(chunk, metric.ids().chunk(chunk)));
  EXPECT_EQ(again.state(), metric.state());
  EXPECT_EQ(again.summary().text, metric.summary().text);
  const Assignment next = experiment.draw(kThirds);
  ASSERT_TRUE(metric.add(next, 1).value());
  ASSERT_TRUE(again.add(next, 1).value());
  EXPECT_EQ(again.state(), metric.state());

  MetricOutcomes wider({.name = "conversion", .most = 2}, kVersions);
  EXPECT_FALSE(wider.restore(metric.state()).value()) << "sums of another range mean nothing";
  MetricOutcomes without({.name = "conversion"}, {"1", "3"});
  ASSERT_TRUE(without.restore(metric.state()).value());
  EXPECT_EQ(without.summary().versions.size(), 3U) << "a version that left router.yaml keeps its outcomes";
}

TEST(MetricOutcomes, ADamagedStateIsRefused) {
  MetricOutcomes metric = conversion(), again = conversion();
  Experiment experiment(8);
  experiment.report(metric, kHalves, {{"1", 0.3}, {"2", 0.35}}, 20);
  const std::string state = metric.state();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = state;
    return changed.replace(changed.find(from), from.size(), to);
  };
  for (const std::string& damaged :
       {std::string(), std::string("[]"), state.substr(0, state.size() / 2), with("\"than\":0", "\"than\":7"),
        with("\"ids\":20", "\"ids\":21"), with("\"sums\":[", "\"sums\":[1,"), with("\"reports\":", "\"reports\":-")}) {
    const auto read = again.restore(damaged);
    EXPECT_FALSE(read.has_value()) << damaged;
    EXPECT_EQ(again.summary().reports, 0U) << "nothing of it is used";
  }
}

}  // namespace
}  // namespace serin::router
