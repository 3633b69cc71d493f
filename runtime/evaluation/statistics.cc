#include "runtime/evaluation/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace serin::evaluation {
namespace {

constexpr uint64_t kSeed = 0x5e21'75e2'1d5e'ed01;

/// splitmix64 (https://prng.di.unimi.it/splitmix64.c): the same numbers on every machine, which std:: distributions do not promise.
class Picks {
 public:
  uint32_t below(uint32_t end) {
    state_ += 0x9e37'79b9'7f4a'7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9;
    z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11eb;
    z ^= z >> 31;
    return static_cast<uint32_t>(((z >> 32) * end) >> 32);
  }

 private:
  uint64_t state_ = kSeed;
};

/// Values of `statistic` over resamples, sorted, without NaN.
template <class Statistic>
std::vector<double> resample(RowList rows, const Statistic& statistic) {
  Picks picks;
  std::vector<uint32_t> chosen(rows.size());
  std::vector<double> values;
  for (int i = 0; i < kResamples && !rows.empty(); ++i) {
    for (uint32_t& row : chosen) row = rows[picks.below(static_cast<uint32_t>(rows.size()))];
    const double value = statistic(RowList(chosen));
    if (!std::isnan(value)) values.push_back(value);
  }
  std::ranges::sort(values);
  return values;
}

/// As numpy.quantile: linear between the neighbours.
double quantile(const std::vector<double>& sorted, double p) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// The score statistic of Tango for the hypothesis that the difference is `delta`.
double tango_score(double b, double c, double n, double delta) {
  const double a = 2 * n, linear = -b - c + (2 * n - b + c) * delta, constant = -c * delta * (1 - delta);
  const double q = (std::sqrt(std::max(0.0, linear * linear - 4 * a * constant)) - linear) / (2 * a);
  const double variance = n * (2 * q + delta * (1 - delta));
  const double distance = b - c - n * delta;
  if (variance <= 0) return distance == 0 ? 0 : std::copysign(std::numeric_limits<double>::infinity(), distance);
  return distance / std::sqrt(variance);
}

}  // namespace

double normal_quantile(double p) {
  constexpr double kA[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                           1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double kB[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02, 6.680131188771972e+01,
                           -1.328068155288572e+01};
  constexpr double kC[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                           -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double kD[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00};
  constexpr double kTail = 0.02425;
  double x = 0;
  if (p < kTail || p > 1 - kTail) {
    const double q = std::sqrt(-2 * std::log(std::min(p, 1 - p)));
    x = (((((kC[0] * q + kC[1]) * q + kC[2]) * q + kC[3]) * q + kC[4]) * q + kC[5]) /
        ((((kD[0] * q + kD[1]) * q + kD[2]) * q + kD[3]) * q + 1);
    if (p > 0.5) x = -x;
  } else {
    const double q = p - 0.5, r = q * q;
    x = (((((kA[0] * r + kA[1]) * r + kA[2]) * r + kA[3]) * r + kA[4]) * r + kA[5]) * q /
        (((((kB[0] * r + kB[1]) * r + kB[2]) * r + kB[3]) * r + kB[4]) * r + 1);
  }
  const double error = 0.5 * std::erfc(-x / std::sqrt(2.0)) - p;
  const double step = error * std::sqrt(2 * std::acos(-1.0)) * std::exp(x * x / 2);
  return x - step / (1 + x * step / 2);
}

Interval wilson_interval(int64_t right, int64_t rows, double confidence) {
  if (rows == 0) return {0, 1};
  const double n = static_cast<double>(rows), p = static_cast<double>(right) / n, z = normal_quantile(0.5 + confidence / 2);
  const double centre = (p + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return {right == 0 ? 0 : centre - half, right == rows ? 1 : centre + half};
}

double mcnemar_p(int64_t only_new_right, int64_t only_old_right) {
  const int64_t n = only_new_right + only_old_right, k = std::min(only_new_right, only_old_right);
  double tail = 0;
  const auto log_choose = [](double all, double some) {
    return std::lgamma(all + 1) - std::lgamma(some + 1) - std::lgamma(all - some + 1);
  };
  for (int64_t i = 0; i <= k; ++i)
    tail += std::exp(log_choose(static_cast<double>(n), static_cast<double>(i)) - static_cast<double>(n) * std::log(2.0));
  return std::min(1.0, 2 * tail);
}

Interval tango_interval(int64_t only_new_right, int64_t only_old_right, int64_t rows, double confidence) {
  const auto b = static_cast<double>(only_new_right), c = static_cast<double>(only_old_right), n = static_cast<double>(rows);
  const double z = normal_quantile(confidence);
  // The score falls as the hypothesis rises, so each bound is found by halving.
  const auto solve = [&](double wanted) {
    double low = -1, high = 1;
    for (int i = 0; i < 100; ++i) {
      const double middle = (low + high) / 2;
      (tango_score(b, c, n, middle) > wanted ? low : high) = middle;
    }
    return (low + high) / 2;
  };
  return {solve(z), solve(-z)};
}

Interval bootstrap_interval(const Metric& metric, RowList rows, double confidence) {
  const std::vector<double> values = resample(rows, metric.value);
  return {quantile(values, 0.5 - confidence / 2), quantile(values, 0.5 + confidence / 2)};
}

Interval paired_bootstrap(const Metric& fresh, const Metric& old, RowList rows, double confidence) {
  const std::vector<double> values = resample(rows, [&](RowList chosen) { return fresh.value(chosen) - old.value(chosen); });
  return {quantile(values, 1 - confidence), quantile(values, confidence)};
}

Interval interval_of(const Metric& metric, RowList rows, double confidence) {
  if (!metric.right) return bootstrap_interval(metric, rows, confidence);
  return wilson_interval(std::ranges::count_if(rows, metric.right), static_cast<int64_t>(rows.size()), confidence);
}

Comparison compare(const Metric& fresh, const Metric& old, RowList rows, double margin, double confidence) {
  Comparison found{.difference = fresh.value(rows) - old.value(rows), .bounds = {}, .p_value = std::numeric_limits<double>::quiet_NaN()};
  if (fresh.right) {
    for (const uint32_t row : rows) {
      const bool is_right = fresh.right(row), was_right = old.right(row);
      found.only_new_right += is_right && !was_right ? 1 : 0;
      found.only_old_right += was_right && !is_right ? 1 : 0;
    }
    found.p_value = mcnemar_p(found.only_new_right, found.only_old_right);
    found.bounds = tango_interval(found.only_new_right, found.only_old_right, static_cast<int64_t>(rows.size()), confidence);
  } else {
    found.bounds = paired_bootstrap(fresh, old, rows, confidence);
  }
  // A loss is a fall of what should be high, and a rise of what should be low.
  const double least_loss = fresh.more_is_better ? -found.bounds.high : found.bounds.low;
  const double most_loss = fresh.more_is_better ? -found.bounds.low : found.bounds.high;
  if (most_loss <= margin) found.verdict = Comparison::Verdict::kNoWorse;
  if (least_loss > margin) found.verdict = Comparison::Verdict::kWorse;
  return found;
}

}  // namespace serin::evaluation
