// version.cc: load aside, warm, serve. A batch that fails is run again job by job, so that one client's bad index costs nobody else an answer.

#include "runtime/serving/version.h"

#include <fmt/format.h>

#include <cstring>

#include "runtime/base/log.h"
#include "runtime/samples/precision.h"

namespace serin::serving {
namespace {

std::vector<protocol::TensorSpec> specs_of(std::span<const engine::TensorInfo> infos) {
  std::vector<protocol::TensorSpec> specs;
  for (const engine::TensorInfo& info : infos) specs.push_back({info.name, info.dtype, info.shape, info.ranked});
  return specs;
}

Status check_tensors(std::span<const engine::TensorInfo> infos) {
  for (const engine::TensorInfo& info : infos) {
    if (info.kind == graph::ValueKind::kTensor) continue;
    return Error{Code::kUnsupported, fmt::format("'{}' is a sequence or an optional, which the protocol has no word for", info.name)};
  }
  return {};
}

Status check_servable(const protocol::Signature& signature) {
  for (const auto* list : {&signature.inputs, &signature.outputs})
    for (const protocol::TensorSpec& spec : *list)
      if (protocol::oip_datatype(spec.dtype).empty() || spec.dtype == DType::kFloat16 || spec.dtype == DType::kBFloat16)
        return Error{Code::kUnsupported,
                     fmt::format("tensor '{}' is {}, which cannot be served yet", spec.name, protocol::oip_datatype(spec.dtype))};
  return {};
}

}  // namespace

Result<std::shared_ptr<Version>> Version::load(const std::string& model, const std::string& version, const std::string& path,
                                               const ModelSettings& settings, Host& host) {
  const auto started = Clock::now();
  std::shared_ptr<Version> loaded(new Version(model, version, host));
  if (auto prepared = loaded->prepare(path, settings); !prepared)
    return prepared.error().in(fmt::format("model '{}' version {}", model, version));
  loaded->metrics_->load_seconds->set(std::chrono::duration<double>(Clock::now() - started).count());
  return loaded;
}

/// With `precision: auto` both are loaded, which takes the memory of both until it is decided; the better one stays.
Status Version::load_engine(const std::string& path, const ModelSettings& settings) {
  engine::LoadOptions options;
  options.threads = settings.threads;
  if (settings.precision == Precision::kBf16 && !host_.bf16_backend)
    return Error{Code::kUnsupported, "precision bf16: this machine, or the instruction set that was asked for, does not multiply bf16"};
  const bool fast = settings.precision == Precision::kBf16;
  SERIN_TRY(engine_, engine::Model::load(path, fast ? *host_.bf16_backend : host_.backend, options));
  parameters_ = {{"precision", fast ? "bf16" : "fp32"}};
  if (settings.precision != Precision::kAuto) return {};
  samples::PrecisionDecision decision{false, "fp32: this machine, or the instruction set that was asked for, does not multiply bf16"};
  if (host_.bf16_backend) {
    SERIN_TRY(auto bf16, engine::Model::load(path, *host_.bf16_backend, options));
    SERIN_TRY(const samples::Samples inputs,
              settings.samples.empty() ? samples::made_up_samples(*engine_, {}, 1) : samples::stored_samples(settings.samples, *engine_));
    SERIN_TRY(decision, samples::decide_precision(*engine_, *bf16, inputs));
    if (decision.bf16) engine_ = std::move(bf16);
  }
  parameters_ = {{"precision", decision.bf16 ? "bf16" : "fp32"}, {"precision_why", decision.why}};
  log::info("model '{}' version {}: precision: {}", model_, version_, decision.why);
  return {};
}

Status Version::prepare(const std::string& path, const ModelSettings& settings) {
  SERIN_CHECK(load_engine(path, settings));
  signature_ = {fmt::format("model '{}' version {}", model_, version_), specs_of(engine_->inputs()), specs_of(engine_->outputs())};
  SERIN_CHECK(check_tensors(engine_->inputs()));
  SERIN_CHECK(check_tensors(engine_->outputs()));
  SERIN_CHECK(check_servable(signature_));

  max_batch_ = engine_->batchable().yes ? settings.max_batch : 1;
  if (!engine_->batchable().yes && settings.max_batch > 1)
    log::info("model '{}' version {}: requests are run one by one: {}", model_, version_, engine_->batchable().why_not);
  const auto count = static_cast<size_t>(settings.instances.value_or(std::max(1, host_.pool.cores() / settings.threads)));
  threads_ = host_.pool.lease(static_cast<int>(count));
  for (size_t i = 0; i < count; ++i) instances_.push_back(std::make_unique<Instance>(engine_, max_batch_));
  metrics_ = std::make_unique<ModelMetrics>(host_.metrics, model_, version_);

  // The batcher must not own the version that owns it; a pool task holds both for as long as a batch runs.
  batcher_ = std::make_shared<Batcher>(Batcher::Options{count, max_batch_, settings.queue_limit}, host_.pool,
                                       [weak = weak_from_this()](size_t instance, std::span<const JobPtr> batch) {
                                         if (const auto self = weak.lock()) self->run_batch(instance, batch);
                                       });
  if (settings.warmup) SERIN_CHECK(warm_up());
  metrics_->weight_bytes->set(static_cast<double>(engine_->weight_bytes()));
  metrics_->arena_bytes->set(static_cast<double>(instances_.front()->arena_bytes()));
  return {};
}

// Every instance runs batch 1 on zeros: plans are made, weights packed, and the curve has its first point before a client waits. Larger batches
// are planned when they are first worth taking.
Status Version::warm_up() {
  auto job = std::make_shared<Job>();
  std::vector<size_t> offsets;
  size_t bytes = 0;
  for (const engine::TensorInfo& info : engine_->inputs()) {
    if (!info.ranked || info.dtype == DType::kString) return {};
    TensorView view{info.dtype, info.shape, nullptr};
    for (size_t axis = 0; axis < view.shape.rank(); ++axis) {
      if (view.shape[axis] >= 0) continue;
      if (axis != 0) return {};  // other free dimensions: nobody said which sizes will come
      view.shape[axis] = 1;
    }
    offsets.push_back(bytes);
    bytes += AlignedBuffer::rounded_up(view.bytes());
    job->inputs.push_back(view);
  }
  job->memory = AlignedBuffer(bytes);
  if (bytes > 0) std::memset(job->memory.data(), 0, bytes);
  for (size_t i = 0; i < offsets.size(); ++i) job->inputs[i].data = job->memory.data() + offsets[i];

  const JobPtr jobs[] = {std::move(job)};
  for (const auto& instance : instances_) {
    for (int run = 0; run < 2; ++run) {  // the first pays for what is made lazily: the second is what a client will see
      const Instance::RunResult ran = instance->run(jobs);
      if (!ran.status && !engine_->planned()) return {};  // zeros may be an input that it refuses, and rightly so
      if (!ran.status) return ran.status.error().in("warm-up");
      if (run == 1) batcher_->learn(ran.bucket_rows, ran.infer);
    }
  }
  return {};
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
  if (!ran.status && batch.size() > 1) {
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
