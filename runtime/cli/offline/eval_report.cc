#include "runtime/cli/offline/eval_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>

#include "runtime/cli/commands.h"

namespace serin::cli {
namespace {

using boost::json::array;
using boost::json::object;
using Verdict = evaluation::Comparison::Verdict;

boost::json::value number(double value) { return std::isfinite(value) ? boost::json::value(value) : boost::json::value(nullptr); }

object measured_json(const std::vector<Measured>& measured) {
  object json;
  for (const Measured& each : measured)
    json[each.metric] = object{{"value", number(each.value)}, {"low", number(each.interval.low)}, {"high", number(each.interval.high)}};
  return json;
}

std::string_view verdict_of(Verdict verdict) {
  return verdict == Verdict::kNoWorse ? "no worse" : verdict == Verdict::kWorse ? "worse" : "inconclusive";
}

object comparison_json(const EvalComparison& comparison) {
  const evaluation::Comparison& outcome = comparison.outcome;
  object json{{"metric", comparison.metric},
              {"old", number(comparison.old_value)},
              {"difference", number(outcome.difference)},
              {"low", number(outcome.bounds.low)},
              {"high", number(outcome.bounds.high)},
              {"margin", comparison.margin},
              {"verdict", verdict_of(outcome.verdict)},
              {"gate", comparison.gate}};
  if (!std::isnan(outcome.p_value)) {
    json["mcnemar_p"] = outcome.p_value;
    json["only_new_right"] = outcome.only_new_right;
    json["only_old_right"] = outcome.only_old_right;
  }
  return json;
}

object drift_json(const EvalDrift& drift) {
  array inputs;
  for (const InputDrift& input : drift.inputs)
    inputs.push_back(object{{"input", input.input},
                            {"elements", input.elements},
                            {"worst_element", input.worst},
                            {"distance", input.distance},
                            {"p_value", input.p_value}});
  return {{"training", object{{"path", drift.training}, {"sha256", drift.sha256}}},
          {"rows", drift.rows},
          {"training_rows", drift.training_rows},
          {"largest", drift.largest()},
          {"inputs", std::move(inputs)}};
}

object latency_json(const EvalLatency& latency, size_t model) {
  object json;
  for (size_t q = 0; q < kLatencyMetrics.size(); ++q) json[kLatencyMetrics[q]] = latency.models[model][q];
  return json;
}

object file_json(const EvalFile& file) { return {{"path", file.path}, {"sha256", file.sha256}}; }

}  // namespace

std::optional<double> EvalReport::value_of(std::string_view metric) const {
  if (drift && metric == "drift") return drift->largest();
  const auto* const found = std::ranges::find(kLatencyMetrics, metric);
  if (!latency || found == kLatencyMetrics.end()) return std::nullopt;
  return latency->models.front()[static_cast<size_t>(found - kLatencyMetrics.begin())];
}

int EvalReport::exit_code() const {
  const bool fails = std::ranges::any_of(requirements, [](const auto& each) { return !each.first.holds(each.second); });
  const bool judged = comparison && comparison->gate;
  if (fails || (judged && comparison->outcome.verdict == Verdict::kWorse)) return kNo;
  return judged && comparison->outcome.verdict == Verdict::kOpen ? kInconclusive : kYes;
}

std::string_view verdict_word(int exit_code) { return exit_code == kYes ? "yes" : exit_code == kNo ? "no" : "inconclusive"; }

std::string report_json(const EvalReport& report) {
  object json{{"schema", "serin.eval/1"},
              {"task", kEvalTasks[static_cast<size_t>(report.task)]},
              {"verdict", verdict_word(report.exit_code())},
              {"model", file_json(report.model)},
              {"data", file_json(report.data)},
              {"label", report.label},
              {"rows", report.rows},
              {"faults", report.faults},
              {"confidence", report.confidence},
              {"metrics", measured_json(report.measured)}};
  if (report.against) json["against"] = file_json(*report.against);
  array requirements;
  for (const auto& [requirement, value] : report.requirements)
    requirements.push_back(object{{"text", requirement.text}, {"value", number(value)}, {"holds", requirement.holds(value)}});
  if (!requirements.empty()) json["requirements"] = std::move(requirements);
  if (report.comparison) json["comparison"] = comparison_json(*report.comparison);
  if (!report.slice_column.empty()) {
    array slices;
    for (const EvalSlice& slice : report.slices)
      slices.push_back(object{{"name", slice.name}, {"rows", slice.rows}, {"metrics", measured_json(slice.measured)}});
    json["slices"] = object{{"column", report.slice_column}, {"values", std::move(slices)}};
  }
  if (!report.classes.empty()) {
    array counts;
    for (size_t row = 0; row < report.classes.size(); ++row) {
      const auto first = report.confusion.begin() + static_cast<std::ptrdiff_t>(row * report.classes.size());
      counts.push_back(array(first, first + static_cast<std::ptrdiff_t>(report.classes.size())));
    }
    json["confusion"] = object{{"classes", array(report.classes.begin(), report.classes.end())}, {"counts", std::move(counts)}};
  }
  if (!report.calibration.empty()) {
    array bins;
    for (const auto& bin : report.calibration)
      bins.push_back(object{{"rows", bin.rows}, {"confidence", bin.confidence}, {"accuracy", bin.accuracy}});
    json["calibration"] = std::move(bins);
  }
  if (report.latency) {
    object timed{{"rows", report.latency->rows}, {"model", latency_json(*report.latency, 0)}};
    if (report.latency->models.size() > 1) timed["against"] = latency_json(*report.latency, 1);
    json["latency"] = std::move(timed);
  }
  if (report.drift) json["drift"] = drift_json(*report.drift);
  array worst;
  for (const WorstRow& row : report.worst)
    worst.push_back(
        object{{"row", row.row}, {"place", row.place}, {"truth", row.truth}, {"answer", row.answer}, {"loss", number(row.loss)}});
  json["worst"] = std::move(worst);
  return boost::json::serialize(json) + "\n";
}

std::string report_text(const EvalReport& report) {
  std::string text = fmt::format("{} of {} rows{}\n", kEvalTasks[static_cast<size_t>(report.task)], report.rows,
                                 report.faults > 0 ? fmt::format(", {} rows at fault left out", report.faults) : "");
  const auto table = [&](const std::vector<Measured>& measured, std::string_view indent) {
    for (const Measured& each : measured)
      text += fmt::format("{}{:<18} {:>9.4f}   {:.4f} to {:.4f}\n", indent, each.metric, each.value, each.interval.low, each.interval.high);
  };
  table(report.measured, "  ");
  for (const EvalSlice& slice : report.slices) {
    text += fmt::format("{} = {}: {} rows\n", report.slice_column, slice.name, slice.rows);
    table(slice.measured, "    ");
  }
  for (size_t m = 0; report.latency && m < report.latency->models.size(); ++m) {
    const auto& of = report.latency->models[m];
    text += fmt::format("one row {}: p50 {:.3f} ms, p90 {:.3f} ms, p99 {:.3f} ms\n", m == 0 ? "takes" : "took before", of[0], of[1], of[2]);
  }
  if (report.drift)
    for (const InputDrift& input : report.drift->inputs)
      text += fmt::format("input {}: distance {:.4f} from the training sample, p {:.3g}{}\n", input.input, input.distance, input.p_value,
                          input.elements > 1 ? fmt::format(" (element {} of {}, corrected)", input.worst, input.elements) : "");
  for (const auto& [requirement, value] : report.requirements)
    text += fmt::format("{:<4} {}: {:.4f}\n", requirement.holds(value) ? "ok" : "FAIL", requirement.text, value);
  if (report.comparison) {
    const EvalComparison& comparison = *report.comparison;
    const evaluation::Comparison& outcome = comparison.outcome;
    text += fmt::format("{} {:+.4f} against {:.4f}; {:.0f} % sure that it is at least {:+.4f}, and at most {:+.4f}\n", comparison.metric,
                        outcome.difference, comparison.old_value, report.confidence * 100, outcome.bounds.low, outcome.bounds.high);
    if (!std::isnan(outcome.p_value))
      text += fmt::format("{} rows only the new model has right, {} only the old one; McNemar's p {:.3g}\n", outcome.only_new_right,
                          outcome.only_old_right, outcome.p_value);
    text += fmt::format("by more than {:.4f}: {}\n", comparison.margin, verdict_of(outcome.verdict));
  }
  return text + fmt::format("verdict: {}\n", verdict_word(report.exit_code()));
}

}  // namespace serin::cli
