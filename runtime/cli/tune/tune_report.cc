#include "runtime/cli/tune/tune_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <limits>

#include "runtime/planner/units.h"

namespace serin::cli {
namespace {

namespace json = boost::json;

constexpr double kAsCheap = 1.1;  // measurements of one setting differ by as much

std::string head() {
  return fmt::format("{:<9} {:>9} {:>9} {:>7} {:>9} {:>10} {:>13} {:>9}\n", "precision", "max_batch", "instances", "clients", "p99 ms",
                     "answers/s", "CPU ms/answer", "memory");
}

json::object choice_json(const Choice& choice) {
  return {{"precision", choice.precision}, {"max_batch", choice.max_batch}, {"instances", choice.instances}};
}

json::object trial_json(const Trial& trial) {
  json::object object = choice_json(trial.choice);
  object["holds"] = trial.why.empty();
  if (!trial.why.empty()) object["why"] = trial.why;
  if (!trial.measured) return object;
  const Measurement& measured = *trial.measured;
  object["latency_ms"] = json::object{{"p50", measured.latency("p50")},
                                      {"p90", measured.latency("p90")},
                                      {"p99", measured.latency("p99")},
                                      {"p999", measured.latency("p999")}};
  object["answers_per_s"] = measured.per_second;
  object["cpu_ms_per_answer"] = measured.cpu_ms;
  object["memory_bytes"] = measured.memory_bytes;
  object["requests"] = measured.sent;
  object["failed"] = measured.failed;
  if (measured.clients > 0) object["clients"] = measured.clients;
  return object;
}

std::string precision_text(const JudgedPrecision& judged) {
  std::string text = fmt::format("{:<9}", judged.precision);
  for (const auto& [requirement, value] : judged.values) text += fmt::format("  {} {:.4f}", requirement.metric, value);
  return text + (judged.why.empty() ? "" : "  out: " + judged.why) + "\n";
}

std::string line_of(const Trial& trial) {
  const Choice& choice = trial.choice;
  std::string line = fmt::format("{:<9} {:>9} {:>9}", choice.precision, choice.max_batch, choice.instances);
  if (trial.measured)
    line += fmt::format(" {:>7} {:>9.3g} {:>10.4g} {:>13.3g} {:>9}",
                        trial.measured->clients > 0 ? std::to_string(trial.measured->clients) : "", trial.measured->latency("p99"),
                        trial.measured->per_second, trial.measured->cpu_ms, planner::short_bytes(trial.measured->memory_bytes));
  return line + (trial.why.empty() ? "" : "  out: " + trial.why);
}

}  // namespace

void TuneReport::choose() {
  const auto cost = [&](const Trial& trial) { return rate > 0 ? trial.measured->cpu_ms : 1 / trial.measured->per_second; };
  const auto holds = [](const Trial& trial) { return trial.why.empty() && trial.measured; };
  std::vector<size_t> left;
  for (size_t i = 0; i < trials.size(); ++i)
    if (holds(trials[i])) left.push_back(i);
  const auto keep_least = [&](const auto& amount) {
    double least = std::numeric_limits<double>::infinity();
    for (const size_t i : left) least = std::min(least, amount(trials[i]));
    std::erase_if(left, [&](size_t i) { return amount(trials[i]) > kAsCheap * least; });
  };
  keep_least(cost);
  keep_least([](const Trial& trial) { return static_cast<double>(trial.measured->memory_bytes); });
  chosen = left.empty() ? std::nullopt : std::optional(left.front());
}

std::string settings_of(const Choice& choice, bool samples) {
  return fmt::format("precision: {}\n{}max_batch: {}\ninstances: {}\n", choice.precision,
                     choice.precision == "int8" && samples ? "samples: samples\n" : "", choice.max_batch, choice.instances);
}

std::string tune_text(const TuneReport& report, bool samples) {
  std::string text = fmt::format("{}: {}{}\n\n", report.model, report.goal,
                                 report.rate > 0 ? fmt::format(", at {:g} requests a second", report.rate) : "");
  for (const JudgedPrecision& judged : report.precisions) text += precision_text(judged);
  if (!report.trials.empty()) text += "\n" + head();
  for (const Trial& trial : report.trials) text += line_of(trial) + "\n";
  if (!report.chosen) return text + "\nno setting that was tried meets the goal\n";
  const Trial& chosen = report.trials[*report.chosen];
  text += fmt::format("\nthe cheapest that meets the goal, by {}:\n\n", report.rate > 0 ? "processor time" : "answers a second");
  const std::string settings = settings_of(chosen.choice, samples);
  for (size_t begin = 0; begin < settings.size();) {
    const size_t end = settings.find('\n', begin);
    text += "    " + settings.substr(begin, end + 1 - begin);
    begin = end + 1;
  }
  return text;
}

std::string tune_json(const TuneReport& report) {
  json::object object{{"schema", "serin.tune/1"}, {"model", report.model}, {"goal", report.goal}};
  if (!report.data.empty()) object["data"] = report.data;
  if (report.rate > 0) object["rate"] = report.rate;
  json::array precisions, trials;
  for (const JudgedPrecision& judged : report.precisions) {
    json::array values;
    for (const auto& [requirement, value] : judged.values)
      values.push_back(
          json::object{{"text", requirement.text}, {"metric", requirement.metric}, {"value", value}, {"holds", requirement.holds(value)}});
    json::object one{{"precision", judged.precision}, {"holds", judged.why.empty()}, {"requirements", std::move(values)}};
    if (!judged.why.empty()) one["why"] = judged.why;
    precisions.push_back(std::move(one));
  }
  for (const Trial& trial : report.trials) trials.push_back(trial_json(trial));
  object["precisions"] = std::move(precisions);
  object["trials"] = std::move(trials);
  object["chosen"] = report.chosen ? json::value(choice_json(report.trials[*report.chosen].choice)) : json::value(nullptr);
  return json::serialize(object) + "\n";
}

}  // namespace serin::cli
