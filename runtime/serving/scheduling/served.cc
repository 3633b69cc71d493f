#include "runtime/serving/scheduling/served.h"

#include <fmt/format.h>

#include "runtime/serving/scheduling/signature.h"

namespace serin::serving {

Status ServedModel::count_rows(Job& job) const {
  SERIN_TRY(job.rows, rows_of_request(served_.signature, job.inputs));
  if (job.rows > max_rows())
    return invalid(
        fmt::format("{}: inference request batch-size must be <= {}, the request has {}", served_.signature.model, max_rows(), job.rows));
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
