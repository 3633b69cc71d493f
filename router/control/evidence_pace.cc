#include "router/control/evidence_pace.h"

#include <algorithm>

namespace serin::router {
namespace {

constexpr std::chrono::seconds kWindow{10};
constexpr size_t kMostLooks = 64;     // changes of weights are looks, too
constexpr double kShortest = 0.9;     // seconds: less says nothing about a pace
constexpr double kFewestBits = 3;     // a healthy canary comes so far once in eight rollouts, so less is not worth a warning
constexpr double kFarthest = 86'400;  // seconds: a trip farther away is not foreseen

}  // namespace

void EvidencePace::add(std::vector<rollout::Evidence> evidence, rollout::Time now) {
  looks_.push_back({now, std::move(evidence)});
  while (looks_.size() > kMostLooks || (looks_.size() > 2 && now - looks_[1].at >= kWindow)) looks_.pop_front();
}

std::optional<NextTrip> EvidencePace::next() const {
  std::optional<NextTrip> first;
  if (looks_.empty()) return first;
  const double seconds = std::chrono::duration<double>(looks_.back().at - looks_.front().at).count();
  if (seconds < kShortest) return first;
  for (const rollout::Evidence& now : looks_.back().evidence) {
    const auto before = std::ranges::find(looks_.front().evidence, now.guard, &rollout::Evidence::guard);
    const double grown = before == looks_.front().evidence.end() ? 0 : now.bits - before->bits;
    if (now.dry_run || grown <= 0 || now.bits < kFewestBits) continue;
    const double left = std::max(0.0, now.bits_to_trip - now.bits) * seconds / grown;
    if (left <= kFarthest && (!first || left < first->seconds)) first = NextTrip{now.guard, left};
  }
  return first;
}

}  // namespace serin::router
