#include "runtime/cli/tools/plan_observe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "router/proxy/metrics_page.h"
#include "runtime/cli/tls_flags.h"
#include "runtime/cli/tools/observed_figures.h"
#include "runtime/net/session.h"

namespace serin::cli {
namespace {

using planner::Observation;
using Unit = Observation::Unit;
constexpr std::chrono::seconds kPatience{10};

/// The lines of one version of a model.
std::string lines_of(std::string_view page, const planner::ModelAnswer& model) {
  const std::string name = fmt::format("model=\"{}\"", model.name), version = fmt::format("version=\"{}\"", model.version);
  std::string lines;
  for (size_t begin = 0; begin < page.size();) {
    const size_t end = std::min(page.find('\n', begin), page.size());
    const std::string_view line = page.substr(begin, end - begin);
    if (line.find(name) != std::string_view::npos && line.find(version) != std::string_view::npos) lines.append(line).append("\n");
    begin = end + 1;
  }
  return lines;
}

ServerFigures figures_of_page(std::string_view page, const std::vector<planner::ModelAnswer>& models) {
  constexpr std::array<std::string_view, 1> kProcess = {"process_resident_memory_bytes"};
  constexpr std::array<std::string_view, 6> kNames = {"serin_model_weight_bytes",     "serin_model_arena_bytes",
                                                      "nv_inference_exec_count",      "nv_inference_count",
                                                      "nv_inference_request_success", "nv_inference_compute_infer_duration_us"};
  ServerFigures figures;
  figures.why_not = "the server does not have it";
  figures.resident = router::read_metrics(page, kProcess).front();
  for (const planner::ModelAnswer& model : models) {
    const auto values = router::read_metrics(lines_of(page, model), kNames);
    if (!values[0] || !values[1]) continue;
    figures.of[name_of(model)] = {.weights = values[0],
                                  .arenas = values[1],
                                  .runs = values[2].value_or(0),
                                  .rows = values[3].value_or(0),
                                  .requests = values[4].value_or(0),
                                  .micros = values[5].value_or(0),
                                  .busy = {},
                                  .servers = {}};
  }
  return figures;
}

Result<ServerFigures> figures_by_page(const std::string& given, const PrometheusFlags& flags,
                                      const std::vector<planner::ModelAnswer>& models) {
  if (!flags.window.empty()) return invalid("--window: is for an address that begins with prometheus+; a server counts since its start");
  auto url = net::parse_url(given.find("://") == std::string::npos ? "http://" + given : given);
  if (!url) return invalid(fmt::format("--observe {}: is no URL such as http://127.0.0.1:8002", given));
  if (url->path == "/") url->path = "/metrics";
  const auto here = [&](std::string_view why) { return Error{Code::kUnavailable, fmt::format("--observe {}: {}", given, why)}; };
  const auto tls = client_tls(flags.tls, url->origin);
  if (!tls) return here(tls.error().message);
  const auto response = net::fetch(url->origin, {.target = url->path}, kPatience, *tls);
  if (!response) return here(response.error().message);
  if (response->status != 200) return here(fmt::format("it answers {}", response->status));
  ServerFigures figures = figures_of_page(response->body, models);
  if (!figures.resident) return here("what it answers is no page of metrics of a server");
  figures.url = fmt::format("{}:{}{}", url->origin.host, url->origin.port, url->path);
  return figures;
}

Result<ServerFigures> figures_of(const std::string& given, const PrometheusFlags& flags, const std::vector<planner::ModelAnswer>& models) {
  if (!PrometheusSource::is_meant_by(given)) return figures_by_page(given, flags, models);
  SERIN_TRY(PrometheusSource source, PrometheusSource::open("--observe", given, flags));
  return figures_by_prometheus(std::move(source), models);
}

/// Lines about the runs of one model.
class Runs {
 public:
  Runs(const planner::ModelAnswer& model, const ModelFigures& figures, std::optional<double> seconds, planner::Observed& observed)
      : model_(model), figures_(figures), seconds_(seconds), observed_(observed) {}

  void compare() {
    if (seconds_) add_rate();
    if (!figures_.runs || !figures_.rows || !figures_.requests || !figures_.micros) return;  // a note names what is absent
    if (*figures_.runs <= 0 || *figures_.requests <= 0) return note("has not run, so its time is not compared");
    const double rows = *figures_.rows / *figures_.runs;
    if (seconds_) add("rows of a run, on average", std::nullopt, rows, Unit::kRows);
    const auto bucket =
        std::ranges::find_if(model_.buckets, [&](const planner::Bucket& each) { return static_cast<double>(each.rows) >= rows; });
    const bool is_planned = bucket != model_.buckets.end() && bucket->seconds;
    const std::optional<double> planned = is_planned ? bucket->seconds : std::nullopt;
    if (!is_planned) note("the plan has no time for it: serin plan --calibrate learns this machine's");
    const double measured = *figures_.micros / *figures_.requests / 1e6;
    if (is_planned || seconds_) add(fmt::format("run, {:.3g} rows on average", rows), planned, measured, Unit::kSeconds);
    if (is_planned)
      observed_.runs.push_back(
          {.model = name_of(model_), .rows = rows, .planned = *planned / bucket->correction, .measured = measured, .runs = *figures_.runs});
    if (seconds_ && figures_.busy) add("part of the time that instances run", busy(planned), *figures_.busy, Unit::kShare);
  }

 private:
  void add_rate() {
    if (figures_.rows) add("rows a second, of all servers", std::nullopt, *figures_.rows / *seconds_, Unit::kPerSecond);
  }
  /// By the number of runs, and how long one is planned to take.
  std::optional<double> busy(std::optional<double> run) const {
    if (!run || !figures_.servers || *figures_.servers <= 0) return std::nullopt;
    return *figures_.runs / *seconds_ * *run / (*figures_.servers * model_.instances);
  }
  void add(const std::string& what, std::optional<double> planned, double measured, Unit unit) {
    observed_.lines.push_back(
        {.what = fmt::format("{} {}", name_of(model_), what), .planned = planned, .measured = measured, .unit = unit, .at_most = false});
  }
  void note(std::string_view text) { observed_.notes.push_back(fmt::format("{}: {}", name_of(model_), text)); }

  const planner::ModelAnswer& model_;
  const ModelFigures& figures_;
  const std::optional<double> seconds_;
  planner::Observed& observed_;
};

void compare_model(const planner::ModelAnswer& model, const ModelFigures& figures, std::optional<double> seconds,
                   planner::Observed& observed) {
  const std::string named = name_of(model);
  if (!model.not_planned.empty()) return observed.notes.push_back(fmt::format("{}: has no plan, because {}", named, model.not_planned));
  if (figures.weights)
    observed.lines.push_back({.what = named + " weights",
                              .planned = static_cast<double>(model.weights.constants + model.weights.packed),
                              .measured = *figures.weights});
  if (figures.arenas)
    observed.lines.push_back(
        {.what = named + " arenas of an instance", .planned = static_cast<double>(model.each_instance()), .measured = *figures.arenas});
  Runs(model, figures, seconds, observed).compare();
}

std::string servers_of(const ServerFigures& figures) {
  double most = 0;
  for (const auto& [name, model] : figures.of) most = std::max(most, model.servers.value_or(0));
  return most > 1 ? fmt::format(", the most of {:.0f} servers", most) : "";
}

}  // namespace

Result<planner::Observed> observe(const std::string& address, const PrometheusFlags& flags, const planner::Answer& answer) {
  SERIN_TRY(const ServerFigures figures, figures_of(address, flags, answer.models));
  planner::Observed observed{.url = figures.url, .window = figures.window, .lines = {}, .runs = {}, .notes = {}};
  if (figures.resident)
    observed.lines.push_back({.what = "memory of the process" + servers_of(figures),
                              .planned = static_cast<double>(answer.total()),
                              .measured = *figures.resident,
                              .at_most = answer.bounded()});
  for (const planner::ModelAnswer& model : answer.models) {
    const auto found = figures.of.find(name_of(model));
    if (found == figures.of.end())
      observed.notes.push_back(fmt::format("{}: {}", name_of(model), figures.why_not));
    else
      compare_model(model, found->second, figures.seconds, observed);
  }
  if (figures.of.empty()) return Error{Code::kUnavailable, fmt::format("--observe {}: {}", address, observed.notes.front())};
  observed.notes.insert(observed.notes.end(), figures.notes.begin(), figures.notes.end());
  return observed;
}

}  // namespace serin::cli
