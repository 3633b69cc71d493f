// summary.h: How the versions of a service stand by a metric, described once for the admin API (runtime/base/schema.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/schema.h"

namespace serin::router {

enum class OutcomeVerdict : uint8_t {
  kNoReports,     ///< nothing can be compared yet
  kUndecided,     ///< an interval still contains 0
  kWinner,        ///< one version is beaten by no other, and all others are beaten
  kNoDifference,  ///< all differences are smaller than the margin
  kUnbalanced,    ///< reports are missing more often for one version
};
std::span<const std::string_view> words_of(OutcomeVerdict);
inline constexpr std::string_view kBetterWords[] = {"higher", "lower"};

struct VersionOutcomes {
  std::string version;
  uint64_t reports = 0;
  std::optional<double> mean;
};
inline constexpr auto kVersionOutcomes = schema::object<VersionOutcomes>(
    "VersionOutcomes", "The outcomes of one version.", schema::field("version", &VersionOutcomes::version, "Its name."),
    schema::field("reports", &VersionOutcomes::reports, "Outcomes that were counted."),
    schema::field("mean", &VersionOutcomes::mean,
                  "Their mean; null: none. Where shares have changed, the comparison is fair and this is not.", {.digits = 6}));

struct OutcomeComparison {
  std::string version, than;
  uint64_t reports = 0;
  double difference = 0, low = 0, high = 0;
  bool balanced = true;
};
inline constexpr auto kOutcomeComparison = schema::object<OutcomeComparison>(
    "OutcomeComparison", "Two versions that requests were drawn between.",
    schema::field("version", &OutcomeComparison::version, "The one."), schema::field("than", &OutcomeComparison::than, "The other."),
    schema::field("reports", &OutcomeComparison::reports, "Outcomes of both that were drawn while both had traffic."),
    schema::field("difference", &OutcomeComparison::difference, "The mean of `version` minus that of `than`.", {.digits = 6}),
    schema::field("low", &OutcomeComparison::low, "The lower end of its interval, which is valid at all times.", {.digits = 6}),
    schema::field("high", &OutcomeComparison::high, "The upper end.", {.digits = 6}),
    schema::field("balanced", &OutcomeComparison::balanced,
                  "False: reports are shown to be missing more often for one of the two, and the difference means nothing."));

struct MetricSummary {
  std::string name;
  std::string_view better = kBetterWords[0];
  double least = 0, most = 1, confidence = 0;
  std::optional<double> margin;
  uint64_t reports = 0;
  std::vector<VersionOutcomes> versions;
  std::vector<OutcomeComparison> comparisons;
  OutcomeVerdict verdict = OutcomeVerdict::kNoReports;
  std::optional<std::string> winner, leading;
  std::string text;
};
inline constexpr auto kMetricSummary = schema::object<MetricSummary>(
    "MetricOutcomes", "How the versions stand by one metric.", schema::field("name", &MetricSummary::name, "Of router.yaml."),
    schema::field("better", &MetricSummary::better, "Which mean is better.", {.words = kBetterWords}),
    schema::field("least", &MetricSummary::least, "The least value of its range."),
    schema::field("most", &MetricSummary::most, "The largest value of its range."),
    schema::field("confidence", &MetricSummary::confidence, "Of all intervals together.", {.digits = 6}),
    schema::field("margin", &MetricSummary::margin, "Smaller differences do not matter; null: all matter."),
    schema::field("reports", &MetricSummary::reports, "Outcomes that were counted."),
    schema::field<kVersionOutcomes>("versions", &MetricSummary::versions, "In the order in which they came."),
    schema::field<kOutcomeComparison>("comparisons", &MetricSummary::comparisons,
                                      "One for each two versions, one of which has an outcome."),
    schema::field("verdict", &MetricSummary::verdict, "What the outcomes show."),
    schema::field("winner", &MetricSummary::winner, "The only version that no other one is shown to be better than; null: undecided."),
    schema::field("leading", &MetricSummary::leading, "The best version at present, shown or not; null: nothing to compare."),
    schema::field("text", &MetricSummary::text, "A sentence for users."));

struct OutcomesSummary {
  std::string service;
  std::vector<MetricSummary> metrics;
};
inline constexpr auto kOutcomesSummary = schema::object<OutcomesSummary>(
    "Outcomes", "Outcomes of one service.", schema::field("service", &OutcomesSummary::service, "Its name."),
    schema::field<kMetricSummary>("metrics", &OutcomesSummary::metrics, "In the order of router.yaml."));

}  // namespace serin::router
