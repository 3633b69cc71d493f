// plan_fleet_load.cc: the exporter adds labels of the pod that has a card, so a card has several series in a window. They are put together here by the
// labels that stay. DCGM has no GPU_UTIL for instances of MIG; GR_ENGINE_ACTIVE is the same share for them.

#include "runtime/cli/tools/plan_fleet_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/planner/fleet_load.h"

namespace serin::cli {
namespace {

constexpr std::string_view kMemory = "DCGM_FI_DEV_FB_USED";            // in MiB
constexpr std::string_view kUtilisation = "DCGM_FI_DEV_GPU_UTIL";      // in percent
constexpr std::string_view kEngine = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";  // a share
constexpr std::string_view kLabels = "Hostname, gpu, UUID, GPU_I_ID";  // which stay for a card or an instance
constexpr double kMiB = 1048576;

using Key = std::string;
Key key_of(const net::PrometheusSeries& series) {
  return fmt::format("{}\n{}\n{}\n{}", series.label("Hostname"), series.label("gpu"), series.label("UUID"), series.label("GPU_I_ID"));
}

/// The exporter's own pod is a label of the target, and no pod that has the card.
bool is_of_pod(const net::PrometheusSeries& series) {
  const std::string_view pod = series.labels.contains("exported_pod") ? series.label("exported_pod") : series.label("pod");
  return !pod.empty() && pod.find("dcgm-exporter") == std::string_view::npos;
}

planner::MeasuredCard card_of(const net::PrometheusSeries& series) {
  const std::string_view gpu = series.label("gpu"), instance = series.label("GPU_I_ID");
  return {.node = std::string(series.label("Hostname")),
          .gpu = fmt::format("{}{}{}", gpu, instance.empty() ? "" : "/", instance),
          .model = std::string(series.label("modelName")),
          .slice = std::string(series.label("GPU_I_PROFILE")),
          .of_pod = is_of_pod(series),
          .busy = {},
          .bytes = {}};
}

std::string mean_of(const PrometheusSource& source, std::string_view metric) {
  const std::string range = source.range(metric);
  return fmt::format("sum by ({0}) (sum_over_time({1})) / sum by ({0}) (count_over_time({1}))", kLabels, range);
}

/// Series that are no number are left out: the card then counts as not measured.
Result<std::map<Key, double>> values_of(PrometheusSource& source, const std::string& query) {
  SERIN_TRY(const auto series, source.ask(query));
  std::map<Key, double> values;
  for (const net::PrometheusSeries& one : series)
    if (const auto value = one.number()) values[key_of(one)] = *value;
  return values;
}

std::optional<double> value_at(const std::map<Key, double>& values, const Key& key) {
  const auto found = values.find(key);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

/// "3" before "10".
bool stands_before(const planner::MeasuredCard& left, const planner::MeasuredCard& right) {
  return std::tuple(left.node, left.gpu.size(), left.gpu) < std::tuple(right.node, right.gpu.size(), right.gpu);
}

Result<std::vector<planner::MeasuredCard>> cards_of(PrometheusSource& source) {
  const std::string query = source.now(kMemory);
  SERIN_TRY(const auto now, source.ask(query));
  if (now.empty()) return source.error(fmt::format("no series answers {}: does it scrape the exporter of DCGM?", query));
  SERIN_TRY(const auto busy, values_of(source, fmt::format("({}) / 100 or ({})", mean_of(source, kUtilisation), mean_of(source, kEngine))));
  SERIN_TRY(const auto used, values_of(source, fmt::format("max by ({}) (max_over_time({}))", kLabels, source.range(kMemory))));
  std::map<Key, planner::MeasuredCard> cards;
  for (const net::PrometheusSeries& series : now) {
    planner::MeasuredCard card = card_of(series);
    const Key key = key_of(series);
    card.busy = value_at(busy, key);
    if (const auto mebibytes = value_at(used, key)) card.bytes = *mebibytes * kMiB;
    const auto [place, is_new] = cards.emplace(key, card);
    if (!is_new) place->second.of_pod = place->second.of_pod || card.of_pod;  // several containers of a pod have it
  }
  std::vector<planner::MeasuredCard> all;
  all.reserve(cards.size());
  for (auto& [key, card] : cards) all.push_back(std::move(card));
  std::ranges::sort(all, stands_before);
  return all;
}

}  // namespace

Status measure_load(const std::string& address, const PrometheusFlags& flags, const planner::Catalogue& catalogue, planner::Fleet& fleet) {
  SERIN_TRY(PrometheusSource source, PrometheusSource::open("--load", address, flags));
  SERIN_TRY(auto cards, cards_of(source));
  size_t all = 0;
  for (const planner::FleetNode& node : fleet.nodes) all += node.accelerators.size();
  const size_t given = planner::apply_load(std::move(cards), catalogue, fleet);
  fleet.notes.push_back(fmt::format("the load of {} of {} accelerators was measured: {}, in the last {}", given, all, source.place(),
                                    config::print_duration(source.window())));
  for (const std::string& warning : source.warnings())
    fleet.notes.push_back(fmt::format("the load may be of a part of the cards, because Prometheus warns: {}", warning));
  return {};
}

}  // namespace serin::cli
