// metric_summary.cc: what the sums of a metric mean: comparisons in its own unit, a verdict, and a sentence.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "router/outcomes/metric_outcomes.h"

namespace serin::router {
namespace {

/// Whether `name` is shown to be better than another one; `worse`: ... worse.
bool is_decided(const OutcomeComparison& pair, std::string_view name, bool better, bool higher_is_better) {
  const bool above = (name == pair.version) == (better == higher_is_better);
  return (pair.version == name || pair.than == name) && (above ? pair.low > 0 : pair.high < 0);
}

/// By how much `name` is better in a comparison that it is part of.
double lead(const OutcomeComparison& pair, std::string_view name, bool higher_is_better) {
  return ((name == pair.version) == higher_is_better ? 1 : -1) * pair.difference;
}

/// The version that stands alone after all that are worse than another one are left out.
std::optional<std::string> find_winner(const MetricSummary& metric, bool higher_is_better) {
  std::optional<std::string> winner;
  for (const VersionOutcomes& version : metric.versions) {
    const auto is_worse = [&](const OutcomeComparison& pair) {
      return is_decided(pair, version.version, /*better=*/false, higher_is_better);
    };
    if (std::ranges::any_of(metric.comparisons, is_worse)) continue;
    if (winner) return std::nullopt;
    winner = version.version;
  }
  return winner;
}

/// The version whose smallest lead is the largest.
std::optional<std::string> find_leading(const MetricSummary& metric, bool higher_is_better) {
  std::optional<std::string> leading;
  double best = -INFINITY;
  for (const VersionOutcomes& version : metric.versions) {
    double least = INFINITY;
    for (const OutcomeComparison& pair : metric.comparisons)
      if (pair.version == version.version || pair.than == version.version)
        least = std::min(least, lead(pair, version.version, higher_is_better));
    if (std::isinf(least) || least <= best) continue;
    best = least;
    leading = version.version;
  }
  return leading;
}

/// Every two versions are compared, and none differs by the margin.
bool all_within(const MetricSummary& metric) {
  const auto is_within = [&](const OutcomeComparison& pair) { return pair.low > -*metric.margin && pair.high < *metric.margin; };
  const size_t versions = metric.versions.size();
  return metric.margin && metric.comparisons.size() == versions * (versions - 1) / 2 && std::ranges::all_of(metric.comparisons, is_within);
}

/// Without what is no longer in router.yaml: a version that is gone can neither win nor stand in the way.
MetricSummary without_gone(const MetricSummary& metric, const std::vector<std::string>& known) {
  const auto is_gone = [&](const std::string& name) { return std::ranges::find(known, name) == known.end(); };
  MetricSummary left = metric;
  std::erase_if(left.versions, [&](const VersionOutcomes& version) { return is_gone(version.version); });
  std::erase_if(left.comparisons, [&](const OutcomeComparison& pair) { return is_gone(pair.version) || is_gone(pair.than); });
  return left;
}

std::string text_of(const MetricSummary& metric) {
  switch (metric.verdict) {
    case OutcomeVerdict::kNoReports: return "no outcome of a request that was drawn between two versions yet";
    case OutcomeVerdict::kUndecided:
      return fmt::format("undecided after {} outcomes: {} leads, which may be chance", metric.reports, *metric.leading);
    case OutcomeVerdict::kWinner: return fmt::format("{} is best: its {} is {}", *metric.winner, metric.name, metric.better);
    case OutcomeVerdict::kNoDifference: return fmt::format("no difference of {:g} or more", *metric.margin);
    case OutcomeVerdict::kUnbalanced: break;
  }
  const auto bad = std::ranges::find(metric.comparisons, false, &OutcomeComparison::balanced);
  return fmt::format(
      "reports are missing more often for one of the versions {} and {}: the outcomes come in another proportion than the draws, so their "
      "difference means nothing. Report every outcome of every version, zeros too, after the same time; then start anew",
      bad->version, bad->than);
}

}  // namespace

std::span<const std::string_view> words_of(OutcomeVerdict) {
  static constexpr std::string_view kWords[] = {"no_reports", "undecided", "winner", "no_difference", "unbalanced"};
  return kWords;
}

OutcomeComparison MetricOutcomes::compare(const Pair& pair) const {
  const Interval interval = pair.difference.interval((1 - config_.confidence) * pair.alpha);
  const double unit = this->unit();
  return {.version = versions_[pair.version].name,
          .than = versions_[pair.than].name,
          .reports = pair.difference.sums().count,
          .difference = interval.estimate * unit,
          .low = interval.low * unit,
          .high = interval.high * unit,
          .balanced = pair.difference.imbalance() < kLogUnbalanced};
}

MetricSummary MetricOutcomes::summary() const {
  MetricSummary summary{.name = config_.name,
                        .better = kBetterWords[config_.higher_is_better ? 0 : 1],
                        .least = config_.least,
                        .most = config_.most,
                        .confidence = config_.confidence,
                        .margin = config_.margin};
  const double unit = config_.most - config_.least;
  for (const Version& version : versions_) {
    summary.reports += version.reports;
    VersionOutcomes& entry = summary.versions.emplace_back(VersionOutcomes{.version = version.name, .reports = version.reports});
    if (version.reports > 0) entry.mean = config_.least + unit * version.values / static_cast<double>(version.reports);
  }
  for (const Pair& pair : pairs_)
    if (pair.difference.sums().count > 0) summary.comparisons.push_back(compare(pair));
  const MetricSummary left = without_gone(summary, known_);
  if (!left.comparisons.empty()) {
    const bool higher = config_.higher_is_better;
    summary.leading = find_leading(left, higher);
    const bool balanced = std::ranges::all_of(left.comparisons, &OutcomeComparison::balanced);
    if (balanced) summary.winner = find_winner(left, higher);
    summary.verdict = !balanced          ? OutcomeVerdict::kUnbalanced
                      : summary.winner   ? OutcomeVerdict::kWinner
                      : all_within(left) ? OutcomeVerdict::kNoDifference
                                         : OutcomeVerdict::kUndecided;
  }
  summary.text = text_of(summary);
  return summary;
}

}  // namespace serin::router
