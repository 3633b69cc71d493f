// queue.cc: latencies are in units of one batch here: t = seconds of a request / seconds of a batch.
//
// A request that comes when the part v of a cycle has passed waits for the rest of it, then for the batches of the backlog W and of those that came
// before it in the same cycle. It is late after t if W + arrivals in v >= rows * m with m = floor(t - 2 + v) + 1. The bound of that is
// exp(-theta rows (m - v)), because E[exp(theta arrivals in v)] = exp(theta rows v).

#include "runtime/planner/queue.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace serin::planner {
namespace {

constexpr int kHalvings = 60;
constexpr double kMostExact = 12;  // batches of waiting: beyond that the alternating sum of M/D/1 loses digits

/// The solution of busy * (exp(x) - 1) = x with x > 0, for 0 < busy < 1.
double decay(double busy) {
  double low = 0, high = 1;
  const auto above = [&](double x) { return busy * std::expm1(x) > x; };
  while (!above(high)) high *= 2;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (above(middle) ? high : low) = middle;
  }
  return low;
}

/// The mean over v from 0 to 1 of min(1, exp(-exponent * (m(v) - v))): m has two values, and each part has an integral.
double late_bound(double exponent, double t) {
  const double whole = std::floor(t), part = t - whole;
  const auto mean = [&](double from, double to, double m) {  // of exp(-exponent (m - v))
    if (m <= 0) return to - from;
    return (std::exp(-exponent * (m - to)) - std::exp(-exponent * (m - from))) / exponent;
  };
  const double turn = 1 - part;  // from here on, one batch more is in time
  return std::min(1.0, mean(0, turn, whole - 1) + mean(turn, 1, whole));
}

/// Erlang's distribution of waiting in M/D/1: the share that waits longer than `wait` batches.
double late_of_one(double busy, double wait) {
  if (wait < 0) return 1;
  if (wait > kMostExact) return 1;
  double sum = 0, factorial = 1;
  for (int k = 0; k <= static_cast<int>(wait); ++k) {
    const double x = busy * (k - wait);
    if (k > 0) factorial *= k;
    sum += std::pow(x, k) / factorial * std::exp(-x);
  }
  return std::clamp(1 - (1 - busy) * sum, 0.0, 1.0);
}

}  // namespace

double late_share(const BatchServer& server, double rate, double seconds) {
  const double t = seconds / server.seconds, busy = rate * server.seconds / server.rows;
  if (busy >= 1) return 1;
  if (busy <= 0) return t >= 1 ? 0 : 1;
  double late = t < 1 ? 1 : late_bound(decay(busy) * server.rows, t);
  if (server.rows == 1) late = std::min(late, late_of_one(busy, t - 1));
  return late;
}

double most_requests(const BatchServer& server, const Slo& slo) {
  const auto in_time = [&](double rate) { return late_share(server, rate, slo.seconds) <= 1 - slo.share; };
  double low = 0, high = kMostBusy * server.rows / server.seconds;
  if (in_time(high)) return high;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (in_time(middle) ? low : high) = middle;
  }
  constexpr double kNone = 1e-6;  // of what it could answer at most
  return low > kNone * server.rows / server.seconds ? low : 0;
}

double latency(const BatchServer& server, double rate, double share) {
  if (rate * server.seconds >= server.rows) return std::numeric_limits<double>::infinity();
  double low = 0, high = 2 * server.seconds;
  while (late_share(server, rate, high) > 1 - share) high *= 2;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (late_share(server, rate, middle) > 1 - share ? low : high) = middle;
  }
  return high;
}

}  // namespace serin::planner
