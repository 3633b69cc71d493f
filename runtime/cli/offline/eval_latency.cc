#include "runtime/cli/offline/eval_latency.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>

namespace serin::cli {
namespace {

using std::chrono::steady_clock;

constexpr int64_t kMostTimed = 1000, kWarmUp = 10;
constexpr std::chrono::seconds kLongestTiming{10};
constexpr std::array<double, 3> kQuantiles = {0.5, 0.9, 0.99};

/// The smallest number that is not below a share `q` of all.
double nearest_rank(const std::vector<double>& sorted, double q) {
  const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(rank, 1) - 1];
}

}  // namespace

Result<EvalLatency> measure_latency(const datasets::Dataset& data, const std::vector<TimedModel>& models) {
  std::deque<RowWorker> workers;
  for (const TimedModel& timed : models) workers.emplace_back(*timed.model);
  std::vector<std::vector<double>> times(models.size());
  const auto deadline = steady_clock::now() + kLongestTiming;
  const int64_t taken = std::min(kMostTimed, data.rows());
  for (int64_t i = -std::min(kWarmUp, taken); i < taken && (i < 1 || steady_clock::now() < deadline); ++i) {
    for (size_t m = 0; m < models.size(); ++m) {
      const ColumnMap& map = *models[m].map;
      SERIN_TRY(const datasets::Rows row, data.read(std::max<int64_t>(i, 0) * data.rows() / taken, 1, map.columns));
      const auto begun = steady_clock::now();
      const Answers answers = workers[m].run(data, row, map);
      const std::chrono::duration<double, std::milli> took = steady_clock::now() - begun;
      if (i >= 0 && !answers.faults[0]) times[m].push_back(took.count());
    }
  }
  EvalLatency latency;
  for (std::vector<double>& of : times) {
    if (of.empty()) return invalid("--latency: no row could be timed; all of them are at fault");
    std::ranges::sort(of);
    latency.rows = static_cast<int64_t>(of.size());
    auto& quantiles = latency.models.emplace_back();
    for (size_t q = 0; q < quantiles.size(); ++q) quantiles[q] = nearest_rank(of, kQuantiles[q]);
  }
  return latency;
}

}  // namespace serin::cli
