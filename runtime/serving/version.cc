// version.cc: a request on its way into a batch and out of it. A batch that fails is run again job by job, so that one client's bad index costs nobody else an
// answer; not where the device is lost: what took it down may be in that batch, and must not take down the next one.

#include "runtime/serving/version.h"

#include <fmt/format.h>

namespace serin::serving {

Status Version::usable() const {
  Status usable = instances_.front()->usable();
  for (const auto& instance : instances_) {
    if (usable) return usable;
    usable = instance->usable();
  }
  return usable;
}

Status Version::submit(JobPtr job) {
  if (engine_->batchable().yes) {
    job->rows = job->inputs.empty() ? 1 : job->inputs.front().shape[0];
    for (size_t i = 1; i < job->inputs.size(); ++i) {
      if (job->inputs[i].shape[0] != job->rows)
        return Error{Code::kInvalidArgument,
                     fmt::format("{}: inputs '{}' and '{}' disagree on the batch: {} and {} rows", signature_.model,
                                 signature_.inputs[0].name, signature_.inputs[i].name, job->rows, job->inputs[i].shape[0])};
    }
    if (job->rows > max_batch_)
      return Error{Code::kInvalidArgument, fmt::format("{}: inference request batch-size must be <= {}, the request has {}",
                                                       signature_.model, max_batch_, job->rows)};
  } else if (!engine_->planned()) {
    job->rows = 1;  // its inputs are looked at when it runs
  } else if (auto bound = engine::bindings_for(engine_->inputs(), job->inputs); !bound) {
    return bound.error().in(signature_.model);
  }
  const bool counted = !job->shadow;
  if (counted) metrics_->pending->add(1);
  auto queued = batcher_->submit(std::move(job));
  if (!queued && counted) metrics_->pending->add(-1);
  if (!queued) return queued.error().in(signature_.model);
  return {};
}

void Version::run_batch(size_t instance, std::span<const JobPtr> batch) {
  const auto taken = Clock::now();
  Instance::RunResult ran = instances_[instance]->run(batch);
  if (!batch.front()->shadow) metrics_->ran_batch();
  const bool lost = !ran.status && ran.status.error().code == Code::kUnavailable;
  if (!ran.status && !lost && batch.size() > 1) {
    for (const JobPtr& job : batch) run_alone(instance, job);
    return;
  }
  if (ran.status) batcher_->learn(ran.bucket_rows, ran.infer);

  const uint64_t seq = host_.next_batch.fetch_add(1, std::memory_order_relaxed);
  const auto n = static_cast<uint32_t>(batch.size());
  for (uint32_t i = 0; i < n; ++i) {
    Answer answer;
    answer.batch = {host_.boot, seq, i, n};
    answer.timing = {taken - batch[i]->arrived, ran.input, ran.infer};
    if (ran.status)
      answer.outputs = std::move(ran.outputs[i]);
    else
      answer.outputs = ran.status.error().in(signature_.model);
    batch[i]->done(std::move(answer));
  }
}

void Version::run_alone(size_t instance, const JobPtr& job) {
  const JobPtr alone[] = {job};
  run_batch(instance, alone);
}

}  // namespace serin::serving
