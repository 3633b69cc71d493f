// engine_scheduler.cc: a request on its way into a batch and out of it. A batch that fails is run again job by job, so that one client's bad index costs nobody else an
// answer, and a job that fails with more along a dimension than it has is run as it is; not where the device is lost: what took it down may be in that batch, and must
// not take down the next one.

#include "runtime/serving/scheduling/engine_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "runtime/base/log.h"

namespace serin::serving {

Status EngineScheduler::usable() const {
  Status usable = instances_.front()->usable();
  for (const auto& instance : instances_) {
    if (usable) return usable;
    usable = instance->usable();
  }
  return usable;
}

namespace {

template <class T>
bool is_one(const TensorView& tensor, size_t i) {
  return tensor.as<const T>()[i] == T{1};
}

bool is_one(const TensorView& tensor, size_t i) {
  switch (tensor.dtype) {
    case DType::kBool: return tensor.as<const bool>()[i];
    case DType::kInt32: return is_one<int32_t>(tensor, i);
    case DType::kInt64: return is_one<int64_t>(tensor, i);
    case DType::kFloat32: return is_one<float>(tensor, i);
    default: return false;
  }
}

/// Whether each row of the masks has an element that counts in all of them (graph::Paddable::masks, which says that rows are along the last axis).
bool something_counts(const Job& job, const std::vector<size_t>& masks) {
  if (masks.empty()) return true;
  const Shape& shape = job.inputs[masks.front()].shape;
  for (const size_t mask : masks)
    if (job.inputs[mask].shape != shape) return false;
  if (shape.rank() == 0 || shape.elements() == 0) return false;
  const auto length = static_cast<size_t>(shape.back()), rows = static_cast<size_t>(shape.elements()) / length;
  for (size_t row = 0; row < rows; ++row) {
    bool counts = false;
    for (size_t i = row * length; i < (row + 1) * length && !counts; ++i)
      counts = std::ranges::all_of(masks, [&](size_t mask) { return is_one(job.inputs[mask], i); });
    if (!counts) return false;
  }
  return true;
}

/// Memory for it may be missing now and there for the next one: no reason to end.
Instance::RunResult run_instance(Instance& instance, std::span<const JobPtr> batch, bool only_if_ready) {
  try {
    return instance.run(batch, only_if_ready);
  } catch (const std::bad_alloc&) {
    Instance::RunResult failed;
    failed.status = Error{Code::kOverloaded, "there is no memory to run the batch"};
    return failed;
  }
}

}  // namespace

/// `own`: the sizes of the job's inputs.
void EngineScheduler::choose_sizes(Job& job, const graph::Bindings& own) const {
  for (const Padding& padding : paddings_) {
    const auto size = own.find(padding.dimension);
    if (size == own.end()) continue;
    const auto next = std::ranges::lower_bound(padding.sizes, size->second);
    if (size->second == 0 || next == padding.sizes.end() || *next == size->second || !something_counts(job, padding.masks)) continue;
    job.padded[padding.dimension] = *next;
  }
  if (!job.padded.empty()) job.sizes = own;
  graph::Bindings common = own;
  for (const auto& [dimension, size] : job.padded) common[dimension] = size;
  set_group(job, common);
}

void EngineScheduler::set_group(Job& job, const graph::Bindings& sizes) const {
  job.group.clear();
  for (const auto& [dimension, size] : sizes)
    if (!engine_->batchable().yes || dimension != engine_->batchable().symbol) job.group.push_back(size);
}

Status EngineScheduler::submit(JobPtr job) {
  if (const Status now = usable(); !now) return now.error().in(name_);  // instances of a device that does not answer never come to say so
  if (sizes_vary_) {
    const auto own = engine::bindings_for(engine_->inputs(), job->inputs);
    if (!own) return own.error().in(name_);
    choose_sizes(*job, *own);
  }
  auto queued = batcher_->submit(std::move(job));
  if (!queued) return queued.error().in(name_);
  return {};
}

/// As clients count it: without batching a request is one, whatever its shape.
int64_t EngineScheduler::rows_of(std::span<const JobPtr> batch) const {
  int64_t rows = 0;
  for (const JobPtr& job : batch) rows += job->rows;
  return std::min(rows, max_batch_);
}

/// As Batcher::Run.
bool EngineScheduler::run_batch(size_t instance, std::span<const JobPtr> batch, bool on_io) {
  const auto taken = Clock::now();
  for (const JobPtr& job : batch) job->pending.end();
  metrics_->run_begins();
  const Instance::RunResult ran = run_instance(*instances_[instance], batch, on_io);
  metrics_->run_ends(batch.size(), taken);
  const bool has_other_way = batch.size() > 1 || !batch.front()->padded.empty();
  if (!ran.ready || (on_io && !ran.status && has_other_way)) return false;
  if (!batch.front()->shadow) metrics_->ran_batch();
  const bool lost = !ran.status && ran.status.error().code == Code::kUnavailable;
  if (!ran.status && !lost && has_other_way) {
    for (const JobPtr& job : batch) {
      if (batch.size() == 1) unpad(*job, ran.status.error());
      run_alone(instance, job);
    }
    return true;
  }
  if (ran.status) {
    batcher_->learn(batch.front()->group, ran.bucket_rows, ran.input + ran.infer);
    if (!batch.front()->shadow) metrics_->measured_batch(rows_of(batch), {.input = ran.input, .infer = ran.infer, .output = ran.output});
  }

  const uint64_t seq = host_.next_batch.fetch_add(1, std::memory_order_relaxed);
  const auto n = static_cast<uint32_t>(batch.size());
  for (uint32_t i = 0; i < n; ++i) {
    Answer answer;
    answer.batch = {host_.boot, seq, i, n};
    answer.timing = {taken - batch[i]->arrived, ran.input, ran.infer, ran.output};
    if (ran.status)
      answer.outputs = ran.outputs(i);
    else
      answer.outputs = ran.status.error().in(name_);
    batch[i]->answer(std::move(answer));
  }
  return true;
}

/// Behind the end the model may look for a position that its table does not have.
void EngineScheduler::unpad(Job& job, const Error& error) {
  if (!said_unpadded_.exchange(true))
    log::info("{}: a size that was rounded up failed, and runs as it is (said once): {}", name_, error.message);
  set_group(job, job.sizes);
  job.padded.clear();
}

void EngineScheduler::run_alone(size_t instance, const JobPtr& job) {
  const JobPtr alone[] = {job};
  run_batch(instance, alone, /*on_io=*/false);
}

}  // namespace serin::serving
