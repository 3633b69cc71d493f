// rollout_outcomes.cc: prints which version is better by the outcomes of a service. The fields are those of router/outcomes/summary.h.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "runtime/cli/rollout/rollout_text.h"

namespace serin::cli {
namespace {

namespace json = boost::json;

std::string word_of(const json::value& value) { return std::string(std::string_view(value.as_string())); }
double amount_of(const json::value& value) { return value.to_number<double>(); }

std::string mean_of(const json::value& version) {
  const json::value& mean = version.at("mean");
  return mean.is_null() ? "-" : fmt::format("{:.5g}", amount_of(mean));
}

/// "2 minus 1": as wide as the widest one.
std::string pair_of(const json::value& comparison) {
  return fmt::format("{} minus {}", word_of(comparison.at("version")), word_of(comparison.at("than")));
}

std::string print_metric(const json::value& metric) {
  std::string lines =
      fmt::format("{}: {} is better, from {:g} to {:g}, confidence {:g} %\n", word_of(metric.at("name")), word_of(metric.at("better")),
                  amount_of(metric.at("least")), amount_of(metric.at("most")), 100 * amount_of(metric.at("confidence")));
  const auto& versions = metric.at("versions").as_array();
  const auto& comparisons = metric.at("comparisons").as_array();
  size_t width = 12;
  for (const json::value& each : versions) width = std::max(width, word_of(each.at("version")).size());
  for (const json::value& each : comparisons) width = std::max(width, pair_of(each).size());
  if (!versions.empty()) lines += fmt::format("  {:<{}} {:>9} {:>11}\n", "version", width, "outcomes", "mean");
  for (const json::value& each : versions)
    lines += fmt::format("  {:<{}} {:>9} {:>11}\n", word_of(each.at("version")), width, amount_of(each.at("reports")), mean_of(each));
  if (!comparisons.empty()) lines += fmt::format("  {:<{}} {:>9} {:>11}   at all times between\n", "difference", width, "outcomes", "");
  for (const json::value& each : comparisons)
    lines += fmt::format("  {:<{}} {:>9} {:>11.4g}   {:.4g} and {:.4g}{}\n", pair_of(each), width, amount_of(each.at("reports")),
                         amount_of(each.at("difference")), amount_of(each.at("low")), amount_of(each.at("high")),
                         each.at("balanced").as_bool() ? "" : "   unbalanced");
  return lines + fmt::format("  {}\n", word_of(metric.at("text")));
}

}  // namespace

std::string print_outcomes(const json::value& outcomes) {
  std::string lines;
  for (const json::value& metric : outcomes.at("metrics").as_array()) lines += (lines.empty() ? "" : "\n") + print_metric(metric);
  return lines;
}

}  // namespace serin::cli
