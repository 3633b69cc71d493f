// engine_scheduler_load.cc: load aside, warm, and only then serve. On which devices, in which precision and for which sizes is settled here.
//
// Instances are spread over the devices, each of which holds the weights once. All that a device will be asked for is planned before anything of it is taken,
// so that a model which does not fit is refused and disturbs nobody.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/log.h"
#include "runtime/engine/value.h"
#include "runtime/graph/proofs/paddable.h"
#include "runtime/protocol/tensor/request_builder.h"
#include "runtime/samples/int8.h"
#include "runtime/samples/precision.h"
#include "runtime/serving/scheduling/batch_curve.h"
#include "runtime/serving/scheduling/engine_scheduler.h"
#include "runtime/serving/scheduling/signature.h"
#include "runtime/serving/scheduling/sizes.h"
#include "runtime/serving/scheduling/warmup.h"

namespace serin::serving {
namespace {

constexpr size_t kInstancesOfADevice = 2;  // while one computes, the other's rows are gathered, copied and handed out

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
      if (protocol::oip_datatype(spec.dtype).empty())
        return Error{Code::kUnsupported,
                     fmt::format("tensor '{}' is {}, which the protocol has no word for", spec.name, dtype_name(spec.dtype))};
  return {};
}

Status check_buckets(const engine::Model& model, const ModelSettings& settings) {
  const std::vector<std::string> symbols = model.symbols();
  for (const auto& [dimension, sizes] : settings.buckets) {
    if (dimension == model.batchable().symbol)
      return Error{Code::kInvalidArgument, fmt::format("buckets: '{}' is the batch, whose sizes follow from max_batch", dimension)};
    if (std::ranges::find(symbols, dimension) == symbols.end())
      return Error{Code::kInvalidArgument,
                   fmt::format("buckets: no input has a dimension '{}'; open are: {}", dimension, fmt::join(symbols, ", "))};
  }
  return {};
}

/// Standard values, and zeros for every other input. Null where one of those has no size, or is text.
JobPtr zeros(const engine::Model& model, const graph::Bindings& sizes) {
  auto job = std::make_shared<Job>();
  std::vector<size_t> offsets;
  size_t bytes = 0;
  const auto& standard = model.graph().standard_inputs;
  for (const engine::TensorInfo& info : model.inputs()) {
    const auto stored = standard.find(info.name);
    offsets.push_back(bytes);
    if (stored != standard.end()) {
      job->inputs.push_back(engine::view_of(*stored->second));
      continue;
    }
    const auto shape = graph::known_shape(graph::bind(info.dims, sizes));
    if (!info.ranked || !shape || info.dtype == DType::kString) return nullptr;
    job->inputs.push_back({info.dtype, *shape, nullptr});
    bytes += AlignedBuffer::rounded_up(job->inputs.back().bytes());
  }
  job->memory = AlignedBuffer(bytes);
  if (bytes > 0) std::memset(job->memory.data(), 0, bytes);
  for (size_t i = 0; i < offsets.size(); ++i)
    if (job->inputs[i].data == nullptr) job->inputs[i].data = job->memory.data() + offsets[i];
  if (model.batchable().yes && !job->inputs.empty()) job->rows = job->inputs.front().shape[0];
  return job;
}

engine::LoadOptions options_of(const ModelSettings& settings, const SignatureChoice& choice) {
  engine::LoadOptions options;
  options.signature = choice.name;
  options.shared = choice.shared;
  options.threads = settings.threads;
  options.replaceable_inputs = settings.optional_inputs;
  if (!settings.buckets.empty()) options.max_plans = kMostSizes;
  return options;
}

engine::Precision on_device(Precision precision) {
  switch (precision) {
    case Precision::kTf32: return engine::Precision::kTf32;
    case Precision::kFp16: return engine::Precision::kFp16;
    case Precision::kBf16: return engine::Precision::kBf16;
    default: return engine::Precision::kFp32;
  }
}

}  // namespace

Result<Served> EngineScheduler::load(const std::string& name, const std::string& path, const ModelSettings& settings, Host& host,
                                     std::shared_ptr<ModelMetrics> metrics, SignatureChoice choice) {
  const std::shared_ptr<EngineScheduler> loaded(new EngineScheduler(name, host, std::move(metrics), std::move(choice)));
  SERIN_CHECK(loaded->prepare(path, settings));
  const int64_t most_rows = settings.batching ? loaded->max_batch_ : INT64_MAX;
  Served served{loaded->signature_, loaded->parameters_, loaded->engine_->batchable().yes, most_rows, loaded->instances_.size(), loaded};
  served.other_signatures = loaded->engine_->graph().signature.others;
  return served;
}

Result<EngineScheduler::Loaded> EngineScheduler::load_engine(const std::string& path, const ModelSettings& settings,
                                                             const kernels::Backend* device) const {
  engine::LoadOptions options = options_of(settings, choice_);
  if (device) {
    options.device = device;
    options.precision = on_device(settings.precision);
    options.device_limit = static_cast<size_t>(settings.gpu_mem_limit);
    options.device_priority = settings.priority;
  }
  if (settings.precision == Precision::kInt8) {
    SERIN_TRY(graph::Graph graph, engine::read_model(path, options));
    SERIN_TRY(samples::Int8Model quantised, samples::int8_model(std::move(graph), host_.backend, options, {settings.samples, {}, 1}));
    return Loaded{std::move(quantised.model), quantised.on_bytes ? Precision::kInt8 : Precision::kFp32, quantised.why, quantised.warning};
  }
  const bool rounds_here = !device && settings.precision != Precision::kFp32;
  if (rounds_here && settings.precision != Precision::kBf16)
    return Error{Code::kUnsupported, fmt::format("precision {}: only a device computes in it", print_precision(settings.precision))};
  if (rounds_here && !host_.bf16_backend)
    return Error{Code::kUnsupported, "precision bf16: this machine, or the instruction set that was asked for, does not multiply bf16"};
  SERIN_TRY(auto model, engine::Model::load(path, rounds_here ? *host_.bf16_backend : host_.backend, options));
  return Loaded{std::move(model), settings.precision, {}, {}};
}

/// `auto` loads the model twice at a time, which takes the memory of both until it is decided. What is served is loaded afresh: trying leaves things behind. int8
/// is tried where there are inputs of users to see its ranges on. Answers why, where there was something to decide.
Result<std::string> EngineScheduler::settle_precision(const std::string& path, const kernels::Backend* device,
                                                      ModelSettings& settings) const {
  if (settings.precision != Precision::kAuto) return std::string();
  settings.precision = Precision::kFp32;
  std::vector<Precision> faster;
  if (device) faster = {Precision::kTf32, Precision::kFp16};
  if (device || host_.bf16_backend) faster.push_back(Precision::kBf16);
  if (!device && !settings.samples.empty()) faster.push_back(Precision::kInt8);
  if (faster.empty()) return std::string("fp32: this machine, or the instruction set that was asked for, does not multiply bf16");

  SERIN_TRY(const Loaded exact, load_engine(path, settings, device));
  SERIN_TRY(const samples::Samples inputs, settings.samples.empty() ? samples::made_up_samples(*exact.model, {}, 1)
                                                                    : samples::stored_samples(settings.samples, *exact.model));
  std::vector<samples::Candidate> candidates;
  for (const Precision precision : faster) {
    ModelSettings tried = settings;
    tried.precision = precision;
    const auto load = [this, &path, device, tried]() -> Result<std::shared_ptr<engine::Model>> {
      SERIN_TRY(Loaded loaded, load_engine(path, tried, device));
      return std::move(loaded.model);
    };
    candidates.push_back({print_precision(precision), load});
  }
  SERIN_TRY(const samples::PrecisionDecision decision, samples::decide_precision(*exact.model, candidates, inputs));
  settings.precision = *parse_precision(decision.precision);
  return decision.why;
}

/// In the metadata and in the log: what was decided, or what became of int8 (a model with nothing to quantise computes in fp32).
void EngineScheduler::say_precision(const Loaded& loaded, const std::string& decided) {
  const std::string& why = decided.empty() ? loaded.why : decided;
  parameters_ = {{"precision", print_precision(loaded.precision)}};
  if (!why.empty()) parameters_.emplace_back("precision_why", why);
  if (!why.empty()) log::info("{}: precision: {}", name_, why);
  if (!loaded.warning.empty()) log::warning("{}: precision: {}", name_, loaded.warning);
}

void EngineScheduler::say_batching(const ModelSettings& settings) {
  if (engine_->batchable().yes || settings.max_batch <= 1) return;
  const auto fixed = protocol::how_to_open_batch(signature_);
  const std::string why = fixed.value_or(engine_->batchable().why_not.empty() ? "its dimensions are fixed" : engine_->batchable().why_not);
  log::info("{}: requests are run one by one: {}", name_, why);
  parameters_.emplace_back("batching_why", why);
}

Status EngineScheduler::read_signature(const ModelSettings& settings) {
  signature_ = signature_of(name_, engine_->inputs(), engine_->outputs(), engine_->graph());
  for (const std::string& name : settings.optional_inputs)
    if (!engine_->graph().standard_inputs.contains(name))
      log::info("{}: input '{}' is optional, but the model stores no value for it: every request brings it", name_, name);
  SERIN_CHECK(check_tensors(engine_->inputs()));
  SERIN_CHECK(check_tensors(engine_->outputs()));
  SERIN_CHECK(check_servable(signature_));
  SERIN_CHECK(check_buckets(*engine_, settings));
  max_batch_ = most_rows(*engine_, settings);
  sizes_ = sizes_to_be_ready_for(*engine_, settings, max_batch_);
  sizes_vary_ = engine_->batchable().yes ? engine_->symbols().size() > 1 : engine_->planned();
  if (engine_->planned()) find_paddings(settings);
  if (sizes_.size() <= kMostSizes) return {};
  return Error{Code::kInvalidArgument, fmt::format("buckets: {} combinations of sizes; at most {}", sizes_.size(), kMostSizes)};
}

/// A length between two of those that the settings name runs as the longer one, where that is proven to change nothing.
void EngineScheduler::find_paddings(const ModelSettings& settings) {
  paddings_.clear();
  for (const auto& [dimension, sizes] : settings.buckets) {
    graph::Paddable proof = graph::prove_paddable(engine_->graph(), dimension);
    if (proof.yes) paddings_.push_back({dimension, sizes, std::move(proof.masks)});
    log::info("{}: sizes of '{}' {}", name_, dimension,
              proof.yes ? "are rounded up" : "are not rounded up, each has a plan of its own: " + proof.why_not);
  }
}

void EngineScheduler::add_instance(std::shared_ptr<engine::Model> engine, Instance::Options options) {
  options.max_batch = max_batch_;
  options.most_sizes = std::max(options.most_sizes, sizes_.size());
  instances_.push_back(std::make_unique<Instance>(std::move(engine), std::move(options)));
}

Status EngineScheduler::place_on_cpu(const std::string& path, ModelSettings settings) {
  SERIN_TRY(const std::string decided, settle_precision(path, nullptr, settings));
  SERIN_TRY(const Loaded loaded, load_engine(path, settings, nullptr));
  say_precision(loaded, decided);
  engine_ = loaded.model;
  SERIN_CHECK(read_signature(settings));
  std::erase_if(sizes_, [&](const graph::Bindings& sizes) {  // larger batches are planned when they are first worth taking
    const auto rows = sizes.find(engine_->batchable().symbol);
    return rows != sizes.end() && rows->second != 1;
  });
  const int count = cpu_instances(settings, host_.pool.cores());
  for (int i = 0; i < count; ++i) add_instance(engine_, {});
  return {};
}

/// Leaves no instance where nothing of the model runs on a device.
Status EngineScheduler::place_on_devices(const std::string& path, ModelSettings settings,
                                         std::span<const kernels::Backend* const> devices) {
  SERIN_TRY(const std::string decided, settle_precision(path, devices.front(), settings));
  const size_t count = settings.instances ? static_cast<size_t>(*settings.instances) : kInstancesOfADevice * devices.size();
  devices = devices.first(std::min(devices.size(), count));
  struct Replica {
    std::shared_ptr<engine::Model> engine;
    std::vector<std::shared_ptr<engine::DeviceArena>> arenas;  // one for each instance there
  };
  std::vector<Replica> replicas;
  for (size_t i = 0; i < devices.size(); ++i) {
    SERIN_TRY(const Loaded loaded, load_engine(path, settings, devices[i]));
    const std::shared_ptr<engine::Model>& engine = loaded.model;
    if (i == 0) {
      say_precision(loaded, decided);
      engine_ = engine;
      SERIN_CHECK(read_signature(settings));
    }
    if (!engine->planned()) return {};
    const size_t own = count / devices.size() + (i < count % devices.size() ? 1 : 0);
    std::vector<std::shared_ptr<engine::DeviceArena>> arenas(own);
    if (!sizes_.empty()) {
      SERIN_TRY(arenas, engine->device_arenas(sizes_, own));
      if (arenas.empty()) return {};
    }
    const engine::DeviceBytes held = engine->device_bytes();
    device_bytes_ += held.weights + held.arena;
    log::info("{}: {} instances on {}; weights {}, arenas {} bytes", name_, own, engine::name_of(*devices[i]), held.weights, held.arena);
    replicas.push_back({engine, std::move(arenas)});
  }
  for (size_t i = 0; i < count; ++i) {  // by turns, so that whoever takes the first few has several devices
    Replica& replica = replicas[i % devices.size()];
    add_instance(replica.engine, {.on_device = true, .arena = std::move(replica.arenas[i / devices.size()])});
  }
  return {};
}

/// Asked before each batch, until the answer is no.
Status EngineScheduler::check_instance(size_t instance) const {
  const Status usable = instances_[instance]->usable();
  if (!usable) log::error("{}: instance {} is retired: {}", name_, instance, usable.error().message);
  return usable;
}

Status EngineScheduler::prepare(const std::string& path, const ModelSettings& settings) {
  engine::Devices::Choice choice;
  if (settings.precision == Precision::kInt8 && settings.device.kind == engine::DeviceChoice::Kind::kAuto) {
    choice.why = "auto: models are quantised for the CPU";
  } else if (host_.devices) {
    SERIN_TRY(choice, host_.devices->choose(settings.device));
  }
  if (!choice.backends.empty()) {
    SERIN_CHECK(place_on_devices(path, settings, choice.backends));
    if (instances_.empty()) choice.why = engine_->planned() ? "nothing of it runs on a device" : engine_->why_interpreted();
  }
  const bool on_cpu = instances_.empty();
  if (on_cpu) SERIN_CHECK(place_on_cpu(path, settings));
  parameters_.emplace_back("device", on_cpu ? "cpu" : "cuda");
  if (!choice.why.empty()) parameters_.emplace_back("device_why", choice.why);
  if (on_cpu && settings.device.kind != engine::DeviceChoice::Kind::kCpu) log::info("{}: runs on the CPU: {}", name_, choice.why);
  say_batching(settings);

  threads_ = host_.pool.lease(static_cast<int>(instances_.size()));
  // The batcher must not own the version that owns it; a pool task holds both for as long as a batch runs.
  const auto run = [weak = weak_from_this()](size_t instance, std::span<const JobPtr> batch, bool on_io) {
    const auto self = weak.lock();
    return !self || self->run_batch(instance, batch, on_io);
  };
  const auto usable = [weak = weak_from_this()](size_t instance) {
    const auto self = weak.lock();
    return self ? self->check_instance(instance) : Status();
  };
  const Batcher::Options options{
      .instances = instances_.size(),
      .max_batch = max_batch_,
      .queues = settings.queues,
      .slo = settings.slo,
      .max_queue_delay = settings.max_queue_delay,
      .on_io_threads = on_cpu && engine_->planned() && settings.threads == 1 && settings.max_queue_delay.count() == 0,
      .by_turns = !on_cpu};
  batcher_ = std::make_shared<Batcher>(options, host_.pool, run, usable);
  if (settings.warmup) SERIN_CHECK(warm_up());
  for (const WarmupRequest& request : settings.warmup_requests)
    if (auto went = warm_up_with(request, settings.batching); !went)
      return went.error().in(fmt::format("warm-up request '{}'", request.name));
  metrics_->weight_bytes->set(static_cast<double>(engine_->weight_bytes()));
  metrics_->arena_bytes->set(static_cast<double>(instances_.front()->arena_bytes()));
  metrics_->device_bytes->set(static_cast<double>(device_bytes_));
  return {};
}

/// Every instance runs every size on zeros: plans are made, weights packed, on a device graphs are recorded, and the curve has its first points before a client
/// waits.
Status EngineScheduler::warm_up() {
  constexpr int kFirst = 1, kRecorded = 2;  // runs that pay for what is made lazily: those after them are what a client will see
  const bool on_device = instances_.front()->on_device();
  for (const auto& instance : instances_) {
    for (const graph::Bindings& sizes : sizes_) {
      const JobPtr jobs[] = {zeros(*engine_, sizes)};
      if (!jobs[0]) return {};
      choose_sizes(*jobs[0], sizes);
      const int runs = on_device ? kRecorded + 2 : kFirst + 1;
      for (int run = 1; run <= runs; ++run) {
        const Instance::RunResult ran = instance->run(jobs);
        if (!ran.status && !engine_->planned()) return {};  // zeros may be an input that it refuses, and rightly so
        if (!ran.status) return ran.status.error().in("warm-up");
        if (run > (on_device ? kRecorded : kFirst)) batcher_->learn(jobs[0]->group, ran.bucket_rows, ran.input + ran.infer);
      }
    }
  }
  return {};
}

/// Every instance, as often as the settings say, before the version is ready. One that a client could not send is not sent either.
Status EngineScheduler::warm_up_with(const WarmupRequest& request, bool batching) {
  const bool has_rows = engine_->batchable().yes;
  SERIN_TRY(const JobPtr job, warmup_job(request, signature_, has_rows && batching));
  if (has_rows && !batching && !job->inputs.empty()) job->rows = job->inputs.front().shape[0];
  if (batching && job->rows > max_batch_)
    return Error{Code::kInvalidArgument, fmt::format("batch_size {} is over max_batch, which is {}", job->rows, max_batch_)};
  if (sizes_vary_) {
    SERIN_TRY(const graph::Bindings own, engine::bindings_for(engine_->inputs(), job->inputs));
    choose_sizes(*job, own);
  }
  const JobPtr jobs[] = {job};
  for (const auto& instance : instances_)
    for (int i = 0; i < request.count; ++i) SERIN_CHECK(instance->run(jobs).status);
  return {};
}

}  // namespace serin::serving
