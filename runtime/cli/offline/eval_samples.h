// eval_samples.h: from records to metrics of one model.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cli/offline/eval_records.h"
#include "runtime/cli/offline/eval_task.h"
#include "runtime/evaluation/classification.h"
#include "runtime/evaluation/metric.h"

namespace serin::cli {

/// The answers of one model, with all metrics that they allow.
struct EvalSamples {
  std::vector<evaluation::Metric> metrics;
  std::function<double(uint32_t)> loss;               ///< how wrong a row is, for the list of the worst
  std::function<std::string(uint32_t)> answer_text;   ///< for that list
  std::shared_ptr<evaluation::ClassSamples> classes;  ///< of a classifier; otherwise null
  std::shared_ptr<const std::vector<size_t>> ranks;   ///< of vectors (evaluation/retrieval.h); otherwise null
  std::shared_ptr<void> kept;                         ///< what the metrics refer to

  /// kInvalidArgument names the metrics that there are. "top7" is there for any depth of the answers.
  Result<evaluation::Metric> metric(const std::string& name) const;
};

struct SampleOptions {
  EvalTask task = EvalTask::kClassification;
  std::vector<std::string> labels;  ///< of a classifier's scores; empty: numbers
  bool softmax = false;
};

/// `model`: position of its answer in each record. kInvalidArgument names the row that does not fit.
Result<EvalSamples> make_samples(const std::vector<EvalRecord>& records, size_t model, const SampleOptions& options);

/// Metrics that a report has where none are named, the first one being that of a comparison.
std::vector<std::string> usual_metrics(EvalTask task, const EvalSamples& samples);

}  // namespace serin::cli
