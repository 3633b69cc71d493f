// mean_difference.cc: a confidence sequence for the difference of two means under known, changing probabilities of the draw.
//
// A is 1 if the request was drawn for the first version, p the probability of that, Y the outcome in [0, 1] and m any number that earlier outcomes
// decide. The draw is independent of everything else, so
//
//   phi = (A - p) (Y - m),     E[phi] = p (1 - p) Delta,     Delta = E[Y if first] - E[Y if second]
//
// whatever the context of the request does. Y - m only takes noise out; m is the mean of the earlier outcomes. If phi >= -c for a c that is known
// before the outcome, Fan, Grama and Liu (2015, "Exponential inequalities for martingales with applications") have for 0 <= l < 1 / c
//
//   E[exp(l phi - phi^2 psi(l c) / c^2)] <= 1 + l E[phi] <= exp(l E[phi]),     psi(x) = -log(1 - x) - x = x^2/2 + x^3/3 + x^4/4 + ...
//
// so that with S = sum phi and D = sum E[phi] the process exp(l (S - D) - sum phi^2 psi(l c) / c^2) is a supermartingale that starts at 1. A mixture
// over l is one as well, and by Ville's inequality it reaches 2 / alpha with probability at most alpha / 2. The same holds for -phi. So S - D stays
// between two bounds after every outcome, except with probability alpha. D is W Delta with W = sum p (1 - p), or, where Delta changes, W times its
// mean weighted by p (1 - p).
//
// c is as small as the draw permits: phi >= -max((1 - p) m, p (1 - m)). With a small share and rare successes that is a tenth of what |phi| <= 1
// says, and a version with 5 % of the traffic wins with fewer outcomes. The sum over psi is kept as the powers of l: sums of phi^2 c^k for k = 0, 1,
// 2, and for all the rest k = 3 with 1 / (1 - l), because c <= 1.
//
// With A - p alone the same process tests whether the outcomes come from the versions in the proportion of the draws.

#include "router/outcomes/mean_difference.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace serin::router {
namespace {

/// l from 0.75 down by a factor of sqrt(2): the smallest one is best for a sum of squares of about 5e10.
constexpr size_t kBets = 32;

struct Bet {
  double rate;        ///< l
  double costs[4];    ///< of the sums of a Spread
  double log_weight;  ///< more on the large ones: they decide first, and a small one has time
  double cost(const Spread& spread) const {
    return costs[0] * spread.squares + costs[1] * spread.first + costs[2] * spread.second + costs[3] * spread.third;
  }
};

std::array<Bet, kBets> make_bets() {
  std::array<Bet, kBets> bets{};
  double all = 0;
  for (size_t k = 0; k < kBets; ++k) all += 1 / static_cast<double>(k + 4);
  for (size_t k = 0; k < kBets; ++k) {
    const double l = 0.75 * std::pow(2, -0.5 * static_cast<double>(k));
    bets[k] = {.rate = l,
               .costs = {l * l / 2, l * l * l / 3, l * l * l * l / 4, l * l * l * l * l / 5 / (1 - l)},
               .log_weight = -std::log(static_cast<double>(k + 4) * all)};
  }
  return bets;
}

const std::array<Bet, kBets> kAllBets = make_bets();

}  // namespace

double log_mixture(double deviation, const Spread& spread) {
  std::array<double, kBets> logs{};
  for (size_t k = 0; k < kBets; ++k) logs[k] = kAllBets[k].log_weight + kAllBets[k].rate * deviation - kAllBets[k].cost(spread);
  const double largest = *std::ranges::max_element(logs);
  double sum = 0;
  for (const double each : logs) sum += std::exp(each - largest);
  return largest + std::log(sum);
}

double deviation_at(double threshold, const Spread& spread) {
  double low = 0, high = INFINITY;  // one bet alone reaches it at `high`
  for (const Bet& bet : kAllBets) high = std::min(high, (threshold - bet.log_weight + bet.cost(spread)) / bet.rate);
  for (int i = 0; i < 50; ++i) {
    const double middle = 0.5 * (low + high);
    (log_mixture(middle, spread) < threshold ? low : high) = middle;
  }
  return high;
}

void Spread::add(double number, double bound) {
  const double square = number * number;
  squares += square;
  first += square * bound;
  second += square * bound * bound;
  third += square * bound * bound * bound;
}

void MeanDifference::add(bool is_first, double share, double value) {
  const double mean = this->mean(), surplus = (is_first ? 1 : 0) - share, score = surplus * (value - mean);
  ++sums_.count;
  sums_.values += value;
  sums_.score += score;
  sums_.overlap += share * (1 - share);
  sums_.up.add(score, std::max((1 - share) * mean, share * (1 - mean)));
  sums_.down.add(-score, std::max((1 - share) * (1 - mean), share * mean));
  sums_.surplus += surplus;
  sums_.more.add(surplus, share);
  sums_.fewer.add(-surplus, 1 - share);
}

Interval MeanDifference::interval(double alpha) const {
  if (sums_.overlap <= 0) return {};
  const double threshold = std::log(2 / alpha);
  const auto scaled = [this](double score) { return std::clamp(score / sums_.overlap, -1.0, 1.0); };
  return {.estimate = scaled(sums_.score),
          .low = scaled(sums_.score - deviation_at(threshold, sums_.up)),
          .high = scaled(sums_.score + deviation_at(threshold, sums_.down))};
}

double MeanDifference::imbalance() const {
  const double up = log_mixture(sums_.surplus, sums_.more), down = log_mixture(-sums_.surplus, sums_.fewer);
  return std::max(up, down) + std::log1p(std::exp(-std::abs(up - down))) - std::log(2.0);
}

}  // namespace serin::router
