#include "runtime/serving/scheduling/served.h"

#include <fmt/format.h>

namespace serin::serving {

Status ServedModel::count_rows(Job& job) const {
  const std::string& model = served_.signature.model;
  const std::vector<protocol::TensorSpec>& inputs = served_.signature.inputs;
  job.rows = job.inputs.empty() ? 1 : job.inputs.front().shape[0];
  for (size_t i = 1; i < job.inputs.size(); ++i) {
    if (job.inputs[i].shape[0] != job.rows)
      return Error{Code::kInvalidArgument, fmt::format("{}: inputs '{}' and '{}' disagree on the batch: {} and {} rows", model,
                                                       inputs[0].name, inputs[i].name, job.rows, job.inputs[i].shape[0])};
  }
  if (job.rows < 1) return Error{Code::kInvalidArgument, fmt::format("{}: the request has a batch of 0 rows", model)};
  if (job.rows > max_rows())
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: inference request batch-size must be <= {}, the request has {}", model, max_rows(), job.rows)};
  return {};
}

Status ServedModel::submit(const JobPtr& job) const {
  if (batchable() && !served_.reshapes.counts_rows) SERIN_CHECK(count_rows(*job));
  if (!job->shadow) job->pending.begin(metrics_->pending);
  Status taken = served_.scheduler->submit(job);
  if (!taken) job->pending.end();
  return taken;
}

}  // namespace serin::serving
