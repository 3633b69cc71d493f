// prometheus_figures.cc: one query for each figure, for all models at once. Counters are compared with themselves, so the servers' restarts and ages do not
// matter; gauges of memory are the most that any server had, because a plan is an upper bound for each.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "runtime/base/config.h"
#include "runtime/cli/tools/observed_figures.h"

namespace serin::cli {
namespace {

struct Query {
  std::optional<double> ModelFigures::* figure;
  std::string_view metric, aggregate, over;  // aggregate by (model, version) (over(metric[window])); an empty `over`: as the metric is now
};

constexpr std::array<Query, 8> kQueries = {{
    {&ModelFigures::weights, "serin_model_weight_bytes", "max", "max_over_time"},
    {&ModelFigures::arenas, "serin_model_arena_bytes", "max", "max_over_time"},
    {&ModelFigures::runs, "nv_inference_exec_count", "sum", "increase"},
    {&ModelFigures::rows, "nv_inference_count", "sum", "increase"},
    {&ModelFigures::requests, "nv_inference_request_success", "sum", "increase"},
    {&ModelFigures::micros, "nv_inference_compute_infer_duration_us", "sum", "increase"},
    {&ModelFigures::busy, "serin_model_busy_ratio", "avg", "avg_over_time"},
    {&ModelFigures::servers, "serin_model_weight_bytes", "count", ""},
}};

/// A label that is one of the models' names.
std::string models_matcher(const std::vector<planner::ModelAnswer>& models) {
  if (models.size() == 1) return "model=" + net::prometheus_quoted(models.front().name);
  std::vector<std::string> patterns;
  for (const planner::ModelAnswer& model : models) {
    std::string pattern;
    for (const char c : model.name) {
      if (std::ispunct(static_cast<unsigned char>(c)) != 0) pattern += '\\';
      pattern += c;
    }
    if (std::ranges::find(patterns, pattern) == patterns.end()) patterns.push_back(std::move(pattern));
  }
  return "model=~" + net::prometheus_quoted(fmt::format("{}", fmt::join(patterns, "|")));
}

std::string text_of(const Query& query, const PrometheusSource& source, const std::string& matcher) {
  const std::string samples =
      query.over.empty() ? source.now(query.metric, matcher) : fmt::format("{}({})", query.over, source.range(query.metric, matcher));
  return fmt::format("{} by (model, version) ({})", query.aggregate, samples);
}

/// A number, or a note.
std::optional<double> number_of(const net::PrometheusSeries& series, const std::string& query, ServerFigures& figures) {
  const auto number = series.number();
  if (number) return *number;
  figures.notes.push_back(fmt::format("{} by the query {}: it is left out", number.error().message, query));
  return std::nullopt;
}

/// Processes that have one of the models. Both metrics of a server have the job and the instance of its target.
Status ask_for_memory(PrometheusSource& source, const std::string& matcher, ServerFigures& figures) {
  const std::string query = fmt::format("max(max_over_time({}) and on (job, instance) max_over_time({}))",
                                        source.range("process_resident_memory_bytes"), source.range("serin_model_weight_bytes", matcher));
  SERIN_TRY(const auto series, source.ask(query));
  if (series.empty()) figures.notes.push_back(fmt::format("no series answers {}: the memory of the process is left out", query));
  if (!series.empty()) figures.resident = number_of(series.front(), query, figures);
  return {};
}

Status ask_for(const Query& query, PrometheusSource& source, const std::string& matcher, const std::vector<std::string>& wanted,
               ServerFigures& figures) {
  const std::string text = text_of(query, source, matcher);
  SERIN_TRY(const auto series, source.ask(text));
  std::vector<std::string> without = wanted;
  for (const net::PrometheusSeries& one : series) {
    const std::string name = fmt::format("{}:{}", one.label("model"), one.label("version"));
    if (std::erase(without, name) > 0) figures.of[name].*query.figure = number_of(one, text, figures);
  }
  std::erase_if(without, [&](const std::string& name) { return !figures.of.contains(name); });  // no server has it
  if (!without.empty()) figures.notes.push_back(fmt::format("{}: no series answers {}", fmt::join(without, ", "), text));
  return {};
}

}  // namespace

std::string name_of(const planner::ModelAnswer& model) { return fmt::format("{}:{}", model.name, model.version); }

Result<ServerFigures> figures_by_prometheus(PrometheusSource source, const std::vector<planner::ModelAnswer>& models) {
  const std::string matcher = models_matcher(models);
  std::vector<std::string> wanted;
  wanted.reserve(models.size());
  for (const planner::ModelAnswer& model : models) wanted.push_back(name_of(model));
  ServerFigures figures{.url = source.place(),
                        .resident = {},
                        .seconds = std::chrono::duration<double>(source.window()).count(),
                        .window = config::print_duration(source.window()),
                        .of = {},
                        .why_not = fmt::format("no series answers {}: is it served, and scraped?", text_of(kQueries[0], source, matcher)),
                        .notes = {}};
  for (const Query& query : kQueries) {
    SERIN_CHECK(ask_for(query, source, matcher, wanted, figures));
    if (figures.of.empty()) return figures;  // the first query is for what every model has
  }
  SERIN_CHECK(ask_for_memory(source, matcher, figures));
  for (const std::string& warning : source.warnings())
    figures.notes.push_back(fmt::format("the figures may be of a part of the servers, because Prometheus warns: {}", warning));
  return figures;
}

}  // namespace serin::cli
