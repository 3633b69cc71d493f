// cpu_guard.cc: the cost of an answer is (CPU - idle) / requests, of blocks with at least 50 requests of the canary, which would take 0.1 s
// of CPU at stable's cost: the kernel counts in steps of 10 ms.
//
// A canary at 5 % pays for its idle threads with few answers. So what it spends without a request is measured while it has none, and is
// taken off; from stable's cost nothing is. As long as it was never idle, or half of its CPU is idle cost, only blocks count in which its
// endpoints had nine tenths of the requests of stable's.
//
// Healthy: a block is above `most_ratio` with probability 1/2 at most, given all earlier ones. A rollback also needs the lower bound (99.9 %,
// Student) of the mean ratio of the latest 20 blocks to be above it.

#include "router/rollout/cpu_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace serin::rollout {
namespace {

constexpr double kLeastRequests = 50, kLeastSeconds = 0.1;
constexpr double kSameLoad = 0.9;
constexpr size_t kLatest = 20, kEnough = 8;
constexpr double kStudentOf8 = 4.785;  // of 8 blocks; fewer are needed of more

void add(CpuSpent& all, const CpuSpent& more) {
  all.cpu_seconds += more.cpu_seconds;
  all.idle_seconds += more.idle_seconds;
  all.idle_known = all.idle_known && more.idle_known;
  all.requests += more.requests;
  all.endpoints = std::max(all.endpoints, more.endpoints);
}

}  // namespace

bool CpuGuard::observe(const std::optional<CpuSpent>& canary, const std::optional<CpuSpent>& stable, std::chrono::milliseconds at) {
  if (!canary || !stable) return false;
  add(block_.canary, *canary);
  add(block_.stable, *stable);
  const Block block = block_;
  if (block.canary.requests < kLeastRequests || block.stable.requests < kLeastRequests) return false;
  const double stable_cost = block.stable.cpu_seconds / block.stable.requests;
  if (block.canary.requests * stable_cost < kLeastSeconds) return false;
  block_ = {};

  const double load = block.canary.requests / std::max(1U, block.canary.endpoints);
  const double stable_load = block.stable.requests / std::max(1U, block.stable.endpoints);
  const bool same_load = load >= kSameLoad * stable_load;
  const bool floor_known = block.canary.idle_known && 2 * block.canary.idle_seconds <= block.canary.cpu_seconds;
  floor_unknown_ = !same_load && !floor_known;
  if (floor_unknown_) return false;
  const double idle = same_load ? 0 : block.canary.idle_seconds;
  stable_cost_ = stable_cost;
  canary_cost_ = std::max(0.0, block.canary.cpu_seconds - idle) / block.canary.requests;
  const double ratio_now = std::max(1e-6, canary_cost_ / stable_cost_);
  ratios_.push_back(std::log(ratio_now));
  if (ratios_.size() > kLatest) ratios_.pop_front();
  dearer_.observe(ratio_now > most_ratio_, ratio_now, at);
  const auto middle = ratio();
  return dearer_.tripped() && middle && middle->least > most_ratio_;
}

std::optional<CpuGuard::Ratio> CpuGuard::ratio() const {
  if (ratios_.size() < kEnough) return std::nullopt;
  const auto count = static_cast<double>(ratios_.size());
  const double mean = std::accumulate(ratios_.begin(), ratios_.end(), 0.0) / count;
  double squares = 0;
  for (const double one : ratios_) squares += (one - mean) * (one - mean);
  return Ratio{std::exp(mean), std::exp(mean - kStudentOf8 * std::sqrt(squares / (count - 1) / count))};
}

std::string CpuGuard::held() const {
  if (4 * dearer_.bits() < dearer_.bits_to_trip() || ratios_.empty() || ratios_.back() <= std::log(most_ratio_)) return "";
  return fmt::format("held: an answer of the canary takes {:.2f} times the CPU time of stable's, and that is not proved yet",
                     std::exp(ratios_.back()));
}

Evidence CpuGuard::evidence() const {
  return {.guard = kName, .bits = dearer_.bits(), .bits_to_trip = dearer_.bits_to_trip(), .canary_events = dearer_.bad()};
}

Verdict CpuGuard::verdict() const {
  const Ratio now = ratio().value_or(Ratio());
  return {kName,
          fmt::format("{}: an answer of the canary takes {:.2f} times the CPU time of stable's (at least {:.2f}; {:g} is tolerated), "
                      "{:.3g} ms instead of {:.3g}, in {} of {} comparisons; e-value 2^{:.1f} over 2^{:.1f}",
                      kName, now.middle, now.least, most_ratio_, 1e3 * canary_cost_, 1e3 * stable_cost_, dearer_.bad(), dearer_.cases(),
                      dearer_.bits(), dearer_.bits_to_trip())};
}

ResourceLine CpuGuard::line() const {
  ResourceLine line{.guard = kName};
  if (!canary_says_ || !stable_says_) {
    line.note = fmt::format("not judged: {} not export CPU time", !canary_says_ && !stable_says_ ? "both versions do"
                                                                  : !canary_says_                ? "the canary does"
                                                                                                 : "stable does");
    return line;
  }
  if (floor_unknown_) line.note = "not judged: what the canary spends without requests is not known, or is most of what it spends";
  if (stable_cost_ > 0) {
    line.stable = stable_cost_;
    line.canary = canary_cost_;
  }
  if (const auto now = ratio()) {
    line.growth = now->middle;
    line.growth_least = now->least;
  }
  return line;
}

}  // namespace serin::rollout
