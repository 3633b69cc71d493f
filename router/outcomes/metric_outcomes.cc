// metric_outcomes.cc: which pairs an outcome is evidence for, and how the confidence is divided among them.
//
// An outcome of version i is evidence for each pair (i, s): among the requests that were drawn for i or s, it was i's with probability
// w_i / (w_i + w_s). Which pairs there are is known from the shares alone and not from outcomes, so the union bound may divide alpha as they come:
// the pairs that are first met together share four fifths of what is left, for others may be met later. Two versions only have 0.8 alpha.
//
// An ID is drawn anew for each request. Where users are sticky it is the user's, so that each counts once: outcomes of one user depend on each other.

#include "router/outcomes/metric_outcomes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace serin::router {
namespace {

constexpr double kAlphaNow = 0.8;
constexpr size_t kMostFollowed = 8;

}  // namespace

MetricOutcomes::MetricOutcomes(MetricConfig config, std::vector<std::string> versions)
    : config_(std::move(config)), known_(std::move(versions)) {}

void MetricOutcomes::reset() {
  versions_.clear();
  pairs_.clear();
  followed_.clear();
  alpha_left_ = 1;
  ids_ = {};
}

size_t MetricOutcomes::find(std::string_view name) const {
  return static_cast<size_t>(std::ranges::find(versions_, name, &Version::name) - versions_.begin());
}

/// The indices of the versions that it was drawn among, as far as router.yaml knows them or knew them.
Result<std::vector<size_t>> MetricOutcomes::admit(const Assignment& assigned) {
  const auto is_known = [&](const std::string& name) {
    return find(name) < versions_.size() || std::ranges::find(known_, name) != known_.end();
  };
  if (!is_known(assigned.version)) return invalid(fmt::format("assigned: the service has no version '{}'", assigned.version));
  std::vector<size_t> indices;
  for (const auto& [name, ppm] : assigned.shares) {
    if (!is_known(name)) continue;
    const size_t index = find(name);
    if (index == kMostVersions)
      return Error{Code::kFailedPrecondition, fmt::format("{} versions have outcomes already: start anew", kMostVersions)};
    if (index == versions_.size()) versions_.push_back({.name = name});
    indices.push_back(index);
  }
  return indices;
}

MetricOutcomes::Pair* MetricOutcomes::find_pair(size_t one, size_t other) {
  const auto found = std::ranges::find_if(pairs_, [version = std::max(one, other), than = std::min(one, other)](const Pair& pair) {
    return pair.version == version && pair.than == than;
  });
  return found == pairs_.end() ? nullptr : &*found;
}

void MetricOutcomes::meet(std::span<const size_t> versions) {
  const size_t before = pairs_.size();
  for (const size_t version : versions)
    for (const size_t than : versions)
      if (than < version && find_pair(version, than) == nullptr) pairs_.push_back({.version = version, .than = than});
  const size_t added = pairs_.size() - before;
  if (added == 0) return;
  for (Pair& pair : std::span(pairs_).subspan(before)) pair.alpha = kAlphaNow * alpha_left_ / static_cast<double>(added);
  alpha_left_ *= 1 - kAlphaNow;
}

const MetricOutcomes::Followed* MetricOutcomes::find_followed(std::string_view rollout) const {
  const auto found = std::ranges::find(followed_, rollout, [](const Followed& each) -> std::string_view { return each.rollout.id; });
  return found == followed_.end() ? nullptr : &*found;
}

bool MetricOutcomes::follow(const FollowedRollout& rollout) {
  if (find_followed(rollout.id) != nullptr) return false;
  if (followed_.size() == kMostFollowed) followed_.erase(followed_.begin());
  followed_.push_back({.rollout = rollout, .difference = {}, .process = rollout::OutcomeProcess(rollout.margin / unit())});
  return true;
}

std::optional<rollout::OutcomeEvidence> MetricOutcomes::evidence_of(std::string_view rollout) const {
  const Followed* const followed = find_followed(rollout);
  if (followed == nullptr || followed->process.state().count == 0) return std::nullopt;
  const DifferenceSums& sums = followed->difference.sums();
  return rollout::OutcomeEvidence{.worse = followed->process.state(),
                                  .difference = (config_.higher_is_better ? 1 : -1) * unit() * sums.score / sums.overlap,
                                  .balanced = followed->difference.imbalance() < kLogUnbalanced};
}

/// A draw from before the rollout may be one of another model with the canary's name.
void MetricOutcomes::add_to(Followed& followed, const Assignment& assigned, double scaled) const {
  const FollowedRollout& rollout = followed.rollout;
  const bool is_canary = assigned.version == rollout.canary;
  if (!assigned.at_ms || *assigned.at_ms < rollout.since_ms || (!is_canary && assigned.version != rollout.stable)) return;
  const double canary = assigned.share_of(rollout.canary), stable = assigned.share_of(rollout.stable);
  if (canary == 0 || stable == 0) return;
  const double share = canary / (canary + stable), good = config_.higher_is_better ? scaled : 1 - scaled;
  followed.process.observe(is_canary, share, good, followed.difference.mean());
  followed.difference.add(is_canary, share, good);
}

Result<bool> MetricOutcomes::add(const Assignment& assigned, double value) {
  if (!(value >= config_.least && value <= config_.most))
    return Error{Code::kOutOfRange,
                 fmt::format("value: must be from {} to {}, the range of '{}', not {}", config_.least, config_.most, config_.name, value)};
  SERIN_TRY(const auto among, admit(assigned));
  switch (ids_.add(assigned.id)) {
    case RecentIds::Added::kNew: break;
    case RecentIds::Added::kKnown: return false;
    case RecentIds::Added::kNoRoom:
      return Error{Code::kFailedPrecondition, fmt::format("'{}' has outcomes of as many users as can be told apart, {}: start anew",
                                                          config_.name, RecentIds::kChunk * RecentIds::kChunks)};
  }
  meet(among);
  const double scaled = (value - config_.least) / unit();
  const size_t own = find(assigned.version);
  ++versions_[own].reports;
  versions_[own].values += scaled;
  for (Followed& followed : followed_) add_to(followed, assigned, scaled);
  const double weight = assigned.share_of(assigned.version);
  for (const size_t other : among) {
    if (other == own) continue;
    Pair& pair = *find_pair(own, other);
    const double share = weight / (weight + assigned.share_of(versions_[other].name));
    const bool is_first = pair.version == own;
    pair.difference.add(is_first, is_first ? share : 1 - share, scaled);
  }
  return true;
}

}  // namespace serin::router
