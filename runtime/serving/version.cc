#include "runtime/serving/version.h"

#include <fmt/format.h>

#include "runtime/serving/engine_scheduler.h"

namespace serin::serving {

Result<std::shared_ptr<Version>> Version::load(const std::string& model, const std::string& version, const std::string& path,
                                               const ModelSettings& settings, Host& host) {
  const auto started = Clock::now();
  std::shared_ptr<Version> loaded(new Version(model, version, host));
  loaded->metrics_ = std::make_shared<ModelMetrics>(host.metrics, model, version);
  const std::string name = fmt::format("model '{}' version {}", model, version);
  auto served = EngineScheduler::load(name, path, settings, host, loaded->metrics_);
  if (!served) return served.error().in(name);
  loaded->served_ = std::move(*served);
  loaded->metrics_->load_seconds->set(std::chrono::duration<double>(Clock::now() - started).count());
  return loaded;
}

Status Version::count_rows(Job& job) const {
  const auto& [model, inputs, outputs] = served_.signature;
  job.rows = job.inputs.empty() ? 1 : job.inputs.front().shape[0];
  for (size_t i = 1; i < job.inputs.size(); ++i) {
    if (job.inputs[i].shape[0] != job.rows)
      return Error{Code::kInvalidArgument, fmt::format("{}: inputs '{}' and '{}' disagree on the batch: {} and {} rows", model,
                                                       inputs[0].name, inputs[i].name, job.rows, job.inputs[i].shape[0])};
  }
  if (job.rows > max_batch())
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: inference request batch-size must be <= {}, the request has {}", model, max_batch(), job.rows)};
  return {};
}

Status Version::submit(JobPtr job) {
  if (batchable()) SERIN_CHECK(count_rows(*job));
  const bool counted = !job->shadow;
  if (counted) metrics_->pending->add(1);
  auto queued = served_.scheduler->submit(std::move(job));
  if (!queued && counted) metrics_->pending->add(-1);
  return queued;
}

}  // namespace serin::serving
