// eval_report.h: the outcome of an evaluation: what is measured, and the verdict. As text, as JSON and (eval_html.h) as a page.
//
// It has no times and no names of machines, so the same model and data give the same bytes, in one run or in shards.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/cli/offline/eval_drift.h"
#include "runtime/cli/offline/eval_gate.h"
#include "runtime/cli/offline/eval_latency.h"
#include "runtime/cli/offline/eval_task.h"
#include "runtime/evaluation/classification.h"
#include "runtime/evaluation/statistics.h"

namespace serin::cli {

struct Measured {
  std::string metric;
  double value = 0;
  evaluation::Interval interval;  ///< two-sided
};

struct EvalFile {
  std::string path, sha256;
};

struct EvalSlice {
  std::string name;
  int64_t rows = 0;
  std::vector<Measured> measured;
};

struct EvalComparison {
  std::string metric;
  double margin = 0;
  double old_value = 0;
  bool gate = false;  ///< --no-worse-by was given
  evaluation::Comparison outcome;
};

struct WorstRow {
  int64_t row = 0;
  std::string place, truth, answer;
  double loss = 0;
};

struct EvalReport {
  EvalTask task = EvalTask::kClassification;
  EvalFile model, data;
  std::optional<EvalFile> against;
  std::string label, slice_column;
  int64_t rows = 0, faults = 0;
  double confidence = 0.95;
  std::vector<Measured> measured;
  std::vector<EvalSlice> slices;
  std::vector<std::pair<Requirement, double>> requirements;  ///< with the value
  std::optional<EvalComparison> comparison;
  std::vector<std::string> classes;
  std::vector<int64_t> confusion;
  std::vector<evaluation::CalibrationBin> calibration;
  std::vector<WorstRow> worst;
  std::optional<EvalDrift> drift;
  std::optional<EvalLatency> latency;

  /// `drift` and latencies, which are no metrics of rows. Nothing: another name, or not measured.
  std::optional<double> value_of(std::string_view metric) const;
  /// kYes, kNo or kInconclusive.
  int exit_code() const;
};

std::string report_json(const EvalReport& report);
std::string report_text(const EvalReport& report);
std::string_view verdict_word(int exit_code);

}  // namespace serin::cli
