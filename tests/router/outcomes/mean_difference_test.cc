// Measured through the public interface: how often an interval ever excludes the truth, how many outcomes a winner takes, and how many it takes to see
// that reports are missing. SERIN_LONG=1 prints the numbers of router/outcomes/README.md.

#include "router/outcomes/mean_difference.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <queue>
#include <vector>

#include "runtime/base/stable_hash.h"

namespace serin::router {
namespace {

constexpr double kAlpha = 0.05;

bool is_long() { return std::getenv("SERIN_LONG") != nullptr; }

class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed)) {}
  double uniform() { return static_cast<double>(mix(state_ += kGolden) >> 11) * 0x1p-53; }
  bool chance(double p) { return uniform() < p; }

 private:
  uint64_t state_;
};

/// A kind of traffic: at each outcome the share of the first version, the means of both, and how an outcome with that mean comes about.
struct Situation {
  const char* name;
  std::function<double(int at)> share;
  std::function<double(int at)> second, effect;
  std::function<double(Random&, double mean)> outcome;
  double delay = 0;  ///< mean number of outcomes that overtake one
};

double constant_half(int) { return 0.5; }
double nothing(int) { return 0; }
double bernoulli(Random& random, double mean) { return random.chance(mean) ? 1 : 0; }
/// Spread evenly around its mean, as far as [0, 1] goes.
double spread(Random& random, double mean) { return mean + (2 * random.uniform() - 1) * std::min(mean, 1 - mean); }
/// Most buy nothing.
double revenue(Random& random, double mean) { return random.chance(2 * mean) ? random.uniform() : 0; }
double daily(int at) { return 0.3 + 0.25 * std::sin(at / 300.0); }
double staged(int at) { return at < 200 ? 0.01 : at < 600 ? 0.05 : at < 1200 ? 0.2 : 0.5; }
/// The share rises just as everything becomes better: a plain difference of means would see a winner.
double rising(int at) { return at < 1000 ? 0.1 : 0.5; }
double with_the_share(int at) { return at < 1000 ? 0.1 : 0.4; }

std::vector<Situation> situations() {
  const auto fixed = [](double value) { return [value](int) { return value; }; };
  return {{"yes or no, 10 %", constant_half, fixed(0.1), nothing, bernoulli},
          {"yes or no, 10 % and 15 %", constant_half, fixed(0.1), fixed(0.05), bernoulli},
          {"a number", constant_half, fixed(0.5), nothing, spread},
          {"revenue, most 0", constant_half, fixed(0.02), fixed(0.005), revenue},
          {"daily waves", constant_half, daily, fixed(0.03), bernoulli},
          {"5 % of the draws", fixed(0.05), fixed(0.1), nothing, bernoulli},
          {"1 -> 5 -> 20 -> 50 %", staged, fixed(0.2), fixed(0.02), bernoulli},
          {"the share rises with the mean", rising, with_the_share, nothing, bernoulli},
          {"the effect turns round", constant_half, fixed(0.3), [](int at) { return at < 1000 ? 0.1 : -0.1; }, bernoulli},
          {"delayed outcomes", staged, daily, fixed(0.02), bernoulli, 200}};
}

struct Reported {
  bool first;
  double share, value, truth;  ///< truth: the difference of the means in its context
};

/// What is reported, in the order of the reports.
std::vector<Reported> reports(const Situation& situation, Random& random, int count) {
  using Due = std::pair<double, Reported>;
  const auto later = [](const Due& a, const Due& b) { return a.first > b.first; };
  std::priority_queue<Due, std::vector<Due>, decltype(later)> due(later);
  std::vector<Reported> all;
  for (int at = 0; at < count; ++at) {
    const double share = situation.share(at), effect = situation.effect(at);
    const bool first = random.chance(share);
    const double value = situation.outcome(random, situation.second(at) + (first ? effect : 0));
    due.push({at - situation.delay * std::log1p(-random.uniform()), {first, share, value, effect}});
    for (; !due.empty() && due.top().first <= at; due.pop()) all.push_back(due.top().second);
  }
  for (; !due.empty(); due.pop()) all.push_back(due.top().second);
  return all;
}

/// Whether the interval excludes the truth after any outcome.
bool ever_misses(const std::vector<Reported>& reported) {
  MeanDifference difference;
  double truth = 0;
  for (const Reported& each : reported) {
    difference.add(each.first, each.share, each.value);
    truth += each.share * (1 - each.share) * each.truth;
    const DifferenceSums& sums = difference.sums();
    if (std::max(log_mixture(sums.score - truth, sums.up), log_mixture(truth - sums.score, sums.down)) >= std::log(2 / kAlpha)) return true;
  }
  return false;
}

TEST(MeanDifference, TheIntervalHoldsAtAllTimesTogether) {
  const int runs = is_long() ? 4000 : 150, length = is_long() ? 10'000 : 2000;
  int all = 0;
  for (const Situation& situation : situations()) {
    int missed = 0;
    for (int run = 0; run < runs; ++run) {
      Random random(static_cast<uint64_t>(run));
      missed += ever_misses(reports(situation, random, length)) ? 1 : 0;
    }
    EXPECT_LE(missed, kAlpha * runs) << situation.name;
    all += missed;
    fmt::print("{:<32} {} of {} runs of {} outcomes ever missed the truth\n", situation.name, missed, runs, length);
  }
  EXPECT_GT(all, 0) << "an interval that never misses is too wide";
}

TEST(MeanDifference, TheIntervalIsWhereTheEvidenceIsReached) {
  Random random(1);
  MeanDifference difference;
  for (int i = 0; i < 3000; ++i) {
    const bool first = random.chance(0.3);
    difference.add(first, 0.3, bernoulli(random, first ? 0.4 : 0.3));
    const Interval now = difference.interval(kAlpha);
    ASSERT_LE(-1, now.low);
    ASSERT_LE(now.low, now.estimate);
    ASSERT_LE(now.estimate, now.high);
    ASSERT_LE(now.high, 1);
  }
  const Interval last = difference.interval(kAlpha);
  const DifferenceSums& sums = difference.sums();
  EXPECT_NEAR(log_mixture(sums.score - last.low * sums.overlap, sums.up), std::log(2 / kAlpha), 1e-6);
  EXPECT_NEAR(log_mixture(last.high * sums.overlap - sums.score, sums.down), std::log(2 / kAlpha), 1e-6);
  EXPECT_NEAR(last.estimate, 0.1, 0.06);
  const Interval before = MeanDifference().interval(kAlpha);
  EXPECT_EQ(before.low, -1);
  EXPECT_EQ(before.high, 1);
}

struct Quantiles {
  size_t median, p90;
};

Quantiles quantiles(std::vector<size_t> numbers) {
  std::ranges::sort(numbers);
  return {numbers[numbers.size() / 2], numbers[numbers.size() * 9 / 10]};
}

/// Outcomes until the interval of one of the versions is above 0.
size_t until_winner(Random& random, double share, double second, double effect) {
  MeanDifference difference;
  for (size_t count = 1; count < 10'000'000; ++count) {
    const bool first = random.chance(share);
    difference.add(first, share, bernoulli(random, second + (first ? effect : 0)));
    if (log_mixture(difference.sums().score, difference.sums().up) >= std::log(2 / kAlpha)) return count;
  }
  return 0;
}

TEST(MeanDifference, AWinnerTakesSoManyOutcomes) {
  struct Row {
    double share, second, effect;
    size_t most;  ///< of the median
  };
  const std::vector<Row> rows = {{0.5, 0.1, 0.02, 14'000}, {0.5, 0.1, 0.05, 2800}, {0.5, 0.5, 0.1, 1400}, {0.05, 0.1, 0.05, 13'000}};
  for (const Row& row : rows) {
    std::vector<size_t> counts;
    for (uint64_t run = 0; run < (is_long() ? 1000U : 15U); ++run) {
      Random random(run);
      counts.push_back(until_winner(random, row.share, row.second, row.effect));
    }
    const Quantiles found = quantiles(counts);
    EXPECT_LE(found.median, row.most) << row.share;
    fmt::print("share {:.2f}: {:.2f} and {:.2f}: a winner after {} outcomes (median), {} (p90)\n", row.share, row.second,
               row.second + row.effect, found.median, found.p90);
  }
}

/// Outcomes until the reports are shown to be missing more often for one version; 0: not within `most`.
size_t until_unbalanced(Random& random, double share, double lost, size_t most) {
  MeanDifference difference;
  for (size_t count = 1; count <= most;) {
    const bool first = random.chance(share);
    if (first && random.chance(lost)) continue;
    difference.add(first, share, bernoulli(random, 0.1));
    if (difference.imbalance() >= std::log(1000)) return count;
    ++count;
  }
  return 0;
}

TEST(MeanDifference, ReportsThatAreMissingForOneVersionAreSeen) {
  for (const double share : {0.5, 0.05}) {
    std::vector<size_t> counts;
    for (uint64_t run = 0; run < (is_long() ? 1000U : 10U); ++run) {
      Random random(run);
      counts.push_back(until_unbalanced(random, share, 0.2, 1'000'000));
    }
    const Quantiles found = quantiles(counts);
    EXPECT_GT(found.median, 0U);
    EXPECT_LE(found.median, share == 0.5 ? 3000U : 20'000U);
    fmt::print("share {:.2f}, 20 % of its reports lost: seen after {} outcomes (median), {} (p90)\n", share, found.median, found.p90);
  }
  const uint64_t runs = is_long() ? 10'000 : 200;
  uint64_t wrong = 0;
  for (uint64_t run = 0; run < runs; ++run) {
    Random random(run);
    wrong += until_unbalanced(random, 0.5, 0, 2000) > 0 ? 1 : 0;
  }
  EXPECT_LE(wrong, std::max<uint64_t>(1, runs / 1000));
  fmt::print("nothing lost: {} of {} runs of 2000 outcomes are called unbalanced\n", wrong, runs);
}

}  // namespace
}  // namespace serin::router
