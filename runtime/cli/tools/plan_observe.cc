#include "runtime/cli/tools/plan_observe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "router/proxy/metrics_page.h"
#include "runtime/cli/tls_flags.h"
#include "runtime/net/session.h"

namespace serin::cli {
namespace {

using planner::Observation;
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

void compare_runs(const planner::ModelAnswer& model, const std::string& named, double runs, double rows, double requests, double micros,
                  planner::Observed& observed) {
  if (runs <= 0 || requests <= 0) return observed.notes.push_back(named + ": has not run, so its time is not compared");
  const double rows_of_a_run = rows / runs;
  const auto bucket =
      std::ranges::find_if(model.buckets, [&](const planner::Bucket& each) { return static_cast<double>(each.rows) >= rows_of_a_run; });
  if (bucket == model.buckets.end() || !bucket->seconds)
    return observed.notes.push_back(named + ": the plan has no time for it: serin plan --calibrate learns this machine's");
  observed.lines.push_back({.what = fmt::format("{} run, {:.3g} rows on average", named, rows_of_a_run),
                            .planned = *bucket->seconds,
                            .measured = micros / requests / 1e6,
                            .unit = Observation::Unit::kSeconds,
                            .at_most = false});
}

/// False: the page does not have the model.
bool compare_model(const planner::ModelAnswer& model, std::string_view page, planner::Observed& observed) {
  constexpr std::array<std::string_view, 6> kNames = {"serin_model_weight_bytes",     "serin_model_arena_bytes",
                                                      "nv_inference_exec_count",      "nv_inference_count",
                                                      "nv_inference_request_success", "nv_inference_compute_infer_duration_us"};
  const auto values = router::read_metrics(lines_of(page, model), kNames);
  if (!values[0] || !values[1]) return false;
  const std::string named = fmt::format("{}:{}", model.name, model.version);
  if (!model.not_planned.empty()) {
    observed.notes.push_back(fmt::format("{}: has no plan, because {}", named, model.not_planned));
    return true;
  }
  observed.lines.push_back(
      {.what = named + " weights", .planned = static_cast<double>(model.weights.constants + model.weights.packed), .measured = *values[0]});
  observed.lines.push_back(
      {.what = named + " arenas of an instance", .planned = static_cast<double>(model.each_instance()), .measured = *values[1]});
  compare_runs(model, named, values[2].value_or(0), values[3].value_or(0), values[4].value_or(0), values[5].value_or(0), observed);
  return true;
}

}  // namespace

Result<planner::Observed> observe(const std::string& given, const planner::Answer& answer) {
  auto url = net::parse_url(given.find("://") == std::string::npos ? "http://" + given : given);
  if (!url) return invalid(fmt::format("--observe {}: is no URL such as http://127.0.0.1:8002", given));
  if (url->path == "/") url->path = "/metrics";
  const auto here = [&](std::string_view why) { return Error{Code::kUnavailable, fmt::format("--observe {}: {}", given, why)}; };
  const auto tls = client_tls({}, url->origin);
  if (!tls) return here(tls.error().message);
  const auto response = net::fetch(url->origin, {.target = url->path}, kPatience, *tls);
  if (!response) return here(response.error().message);
  if (response->status != 200) return here(fmt::format("it answers {}", response->status));
  constexpr std::array<std::string_view, 1> kProcess = {"process_resident_memory_bytes"};
  const auto resident = router::read_metrics(response->body, kProcess).front();
  if (!resident) return here("what it answers is no page of metrics of a server");
  planner::Observed observed{.url = fmt::format("{}:{}{}", url->origin.host, url->origin.port, url->path), .lines = {}, .notes = {}};
  observed.lines.push_back({.what = "memory of the process", .planned = static_cast<double>(answer.total()), .measured = *resident});
  size_t found = 0;
  for (const planner::ModelAnswer& model : answer.models) {
    if (compare_model(model, response->body, observed))
      ++found;
    else
      observed.notes.push_back(fmt::format("{}:{}: the server does not have it", model.name, model.version));
  }
  if (found == 0) return here(observed.notes.front());
  return observed;
}

}  // namespace serin::cli
