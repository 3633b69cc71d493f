// steps_scheduler.cc: one Run for each row, held by its work in the queue, and then by the model's job.

#include "runtime/serving/scheduling/steps_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/steps/pipeline/paddle_steps.h"
#include "runtime/steps/vision/paddle_export.h"

namespace serin::serving {
namespace {

using steps::Made;
using steps::Pipeline;

/// Whether axis 0 of a model's tensor counts rows. A model that is not batchable takes one row, with that axis or without it.
bool has_rows(const protocol::TensorSpec& spec, bool batchable, bool input) {
  if (batchable) return true;
  return spec.ranked && spec.shape.rank() > 0 && (spec.shape[0] == 1 || (input && spec.shape[0] < 0));
}

Shape without_rows(const Shape& shape) { return Shape(shape.dims().subspan(1)); }

Shape with_rows(int64_t rows, const Shape& shape) {
  Shape all{rows};
  for (const int64_t dim : shape) all.push_back(dim);
  return all;
}

std::vector<steps::TensorFacts> facts_of(std::span<const protocol::TensorSpec> specs, const std::vector<bool>& rows) {
  std::vector<steps::TensorFacts> facts;
  facts.reserve(specs.size());
  for (size_t i = 0; i < specs.size(); ++i)
    facts.push_back({specs[i].name, specs[i].dtype, rows[i] ? without_rows(specs[i].shape) : specs[i].shape});
  return facts;
}

/// What clients see of them.
std::vector<protocol::TensorSpec> specs_for_clients(std::span<const Pipeline::ClientTensor> tensors,
                                                    std::span<const protocol::TensorSpec> model) {
  std::vector<protocol::TensorSpec> specs;
  for (const Pipeline::ClientTensor& tensor : tensors) {
    protocol::TensorSpec& spec = specs.emplace_back();
    if (tensor.model) spec = model[*tensor.model];
    spec.name = tensor.facts.name;
    spec.dtype = tensor.facts.dtype;
    spec.shape = with_rows(-1, tensor.facts.shape);
    spec.body = !tensor.model;
  }
  return specs;
}

Status check_rank(std::span<const protocol::TensorSpec> specs) {
  for (const protocol::TensorSpec& spec : specs)
    if (spec.ranked && !Shape::fits(spec.shape.rank() + 1)) return invalid(fmt::format("'{}' has too many dimensions", spec.name));
  return {};
}

}  // namespace

class StepsScheduler::Run : public std::enable_shared_from_this<Run> {
 public:
  Run(std::shared_ptr<StepsScheduler> scheduler, JobPtr job)
      : scheduler_(std::move(scheduler)), pipeline_(*scheduler_->pipeline_), job_(std::move(job)) {
    for (size_t i = 0; i < pipeline_.inputs().size(); ++i)
      if (!pipeline_.inputs()[i].model) elements_.emplace_back(job_->inputs[i].as<const std::string>()[0]);
  }
  ~Run() { scheduler_->runs_.remove(job_); }

  bool quick() const { return pipeline_.quick_before(elements_); }

  /// An error: nobody is answered.
  struct Refusal {
    Error error;
    bool by_step = false;
  };
  std::optional<Refusal> prepare() {
    if (job_->given_up()) return std::nullopt;
    const auto began = Clock::now();
    auto prepared = guarded([&] { return pipeline_.before(elements_, observe()); });
    if (!prepared) return Refusal{prepared.error(), prepared.error().code != Code::kOverloaded};
    auto inner = inner_job(*std::move(prepared));
    if (!inner) return Refusal{inner.error(), true};
    prepared_in_ = Clock::now() - began;
    {
      const MutexLock lock(mutex_);
      inner_ = *inner;
    }
    if (const Status taken = scheduler_->below_->submit(*inner); !taken) return Refusal{taken.error()};
    return std::nullopt;
  }

  void answer(const Refusal& refusal) {
    Answer answer;
    answer.outputs = refusal.error;
    answer.refused = refusal.by_step;
    job_->answer(std::move(answer));
  }

  void withdraw() {
    JobPtr inner;
    {
      const MutexLock lock(mutex_);
      inner = inner_.lock();
    }
    if (inner) scheduler_->below_->withdraw(inner);
  }

 private:
  /// Memory of a job's tensors.
  struct Held {
    std::vector<std::optional<Made>> made;
    JobPtr request;
  };

  steps::Observe observe() const {
    return [this](std::string_view part, std::chrono::nanoseconds took) { scheduler_->observe(part, took); };
  }

  Result<JobPtr> inner_job(Pipeline::Prepared prepared) {
    facts_ = std::move(prepared.facts);
    const auto held = std::make_shared<Held>(Held{std::move(prepared.inputs), job_});
    JobPtr inner = part_of(job_);
    inner->inputs.resize(held->made.size());
    for (size_t i = 0; i < held->made.size(); ++i)
      if (held->made[i]) inner->inputs[i] = in_model(held->made[i]->view(), i);
    for (size_t i = 0; i < pipeline_.inputs().size(); ++i) {
      const auto& model = pipeline_.inputs()[i].model;
      if (!model) continue;
      TensorView own = job_->inputs[i];
      own.shape = without_rows(own.shape);
      inner->inputs[*model] = in_model(own, *model);
    }
    for (size_t i = 0; i < inner->inputs.size(); ++i) {
      const protocol::TensorSpec& spec = scheduler_->model_inputs_[i];
      if (!spec.takes(inner->inputs[i].shape))
        return invalid(fmt::format("the steps make {} for the model's input '{}', which is {}", inner->inputs[i].shape.str(), spec.name,
                                   spec.shape.str()));
    }
    inner->patience = job_->patience;
    inner->admitted = job_->admitted;
    inner->behind = job_->behind;
    inner->holds = held;
    inner->pending.take_over(job_->pending);
    inner->done = [self = shared_from_this()](Answer answer) { self->computed(std::move(answer)); };
    return inner;
  }

  TensorView in_model(TensorView row, size_t input) const {
    if (scheduler_->rows_.inputs[input]) row.shape = with_rows(1, row.shape);
    return row;
  }

  void computed(Answer answer) {
    answer.timing.input += prepared_in_;
    if (!answer.outputs || pipeline_.quick_after()) return finish(std::move(answer));
    auto held = std::make_shared<Answer>(std::move(answer));
    scheduler_->threads_->submit(shared_from_this(), StepThreads::Place::kAfter, [this, held] { finish(std::move(*held)); });
  }

  void finish(Answer answer) {
    if (job_->given_up()) return;
    if (answer.outputs) {
      const auto began = Clock::now();
      answer.outputs = outputs_of(*answer.outputs);
      answer.timing.output += Clock::now() - began;
    }
    job_->answer(std::move(answer));
  }

  Result<Outputs> outputs_of(const Outputs& model) const {
    struct Block {
      std::shared_ptr<const void> model;
      std::vector<Made> made;
    };
    auto block = std::make_shared<Block>(Block{model.block, {}});
    std::vector<TensorView> rows(model.tensors.begin(), model.tensors.end());
    for (size_t i = 0; i < rows.size(); ++i)
      if (scheduler_->rows_.outputs[i]) rows[i].shape = without_rows(rows[i].shape);
    SERIN_TRY(block->made, guarded([&] { return pipeline_.after(rows, facts_, observe()); }));

    std::vector<TensorView> tensors;
    size_t next = 0;
    for (const Pipeline::ClientTensor& output : pipeline_.outputs()) {
      TensorView view = output.model ? rows[*output.model] : block->made[next++].view();
      if (!Shape::fits(view.shape.rank() + 1)) return Error{Code::kInternal, "an output has too many dimensions"};
      view.shape = with_rows(1, view.shape);
      tensors.push_back(view);
    }
    return Outputs::of(std::move(tensors), std::move(block));
  }

  const std::shared_ptr<StepsScheduler> scheduler_;
  const Pipeline& pipeline_;
  const JobPtr job_;
  std::vector<std::string_view> elements_;
  steps::RowFacts facts_;
  std::chrono::nanoseconds prepared_in_{0};

  Mutex mutex_;
  std::weak_ptr<Job> inner_ SERIN_GUARDED_BY(mutex_);
};

StepsScheduler::StepsScheduler(std::shared_ptr<Scheduler> below, std::shared_ptr<const Pipeline> pipeline, Rows rows,
                               std::vector<protocol::TensorSpec> inputs, size_t most_waiting, Host& host, ModelMetrics& metrics)
    : below_(std::move(below)),
      pipeline_(std::move(pipeline)),
      rows_(std::move(rows)),
      model_inputs_(std::move(inputs)),
      most_waiting_(most_waiting),
      threads_(std::make_shared<StepThreads>(host.pool)) {
  for (const std::string_view part : pipeline_->parts()) durations_.emplace(part, metrics.step_seconds(host.metrics, part));
}

Result<Served> StepsScheduler::over(Served served, const steps::StepsSettings& settings, size_t most_waiting, Host& host,
                                    const std::shared_ptr<ModelMetrics>& metrics) {
  protocol::Signature& signature = served.signature;
  SERIN_CHECK(check_rank(signature.inputs));
  SERIN_CHECK(check_rank(signature.outputs));
  Rows rows = rows_of(served);
  SERIN_TRY(auto pipeline, Pipeline::make(settings, facts_of(signature.inputs, rows.inputs), facts_of(signature.outputs, rows.outputs)));
  std::vector<protocol::TensorSpec> model_inputs = signature.inputs;
  signature.inputs = specs_for_clients(pipeline->inputs(), model_inputs);
  signature.outputs = specs_for_clients(pipeline->outputs(), signature.outputs);
  served.scheduler = std::shared_ptr<StepsScheduler>(new StepsScheduler(std::move(served.scheduler), std::move(pipeline), std::move(rows),
                                                                        std::move(model_inputs), most_waiting, host, *metrics));
  served.batchable = true;
  return served;
}

StepsScheduler::Rows StepsScheduler::rows_of(const Served& served) {
  Rows rows;
  for (const auto& spec : served.signature.inputs) rows.inputs.push_back(has_rows(spec, served.batchable, /*input=*/true));
  for (const auto& spec : served.signature.outputs) rows.outputs.push_back(has_rows(spec, served.batchable, /*input=*/false));
  return rows;
}

std::shared_ptr<const steps::StepsSettings> StepsScheduler::find_steps(const std::string& name, const std::string& path,
                                                                       const Served& served) {
  const auto file = steps::find_paddle_export(std::filesystem::path(path).parent_path());
  if (!file) return nullptr;
  const std::string base = std::filesystem::path(*file).filename();
  const auto read = [&]() -> Result<std::optional<steps::StepsSettings>> {
    SERIN_TRY(const steps::PaddleExport model, steps::load_paddle_export(*file));
    const Rows rows = rows_of(served);
    return steps::steps_of_paddle(model, facts_of(served.signature.inputs, rows.inputs), facts_of(served.signature.outputs, rows.outputs));
  };
  auto found = read();
  if (!found) log::warning("{}: {} is not used, clients send tensors: {}", name, base, found.error().message);
  if (!found || !*found) return nullptr;
  log::info("{}: clients send pictures, as {} says; 'pre: []' in serin.yaml lets them send tensors", name, base);
  return std::make_shared<const steps::StepsSettings>(std::move(**found));
}

void StepsScheduler::observe(std::string_view part, std::chrono::nanoseconds took) const {
  if (const auto histogram = durations_.find(part); histogram != durations_.end())
    histogram->second->observe(std::chrono::duration<double>(took).count());
}

Status StepsScheduler::submit(JobPtr job) {
  const auto run = std::make_shared<Run>(shared_from_this(), job);
  const bool quick = run->quick();
  if (!quick && !job->admitted && threads_->waiting() >= most_waiting_)
    return Error{Code::kOverloaded,
                 fmt::format("exceeds maximum queue size: {} requests wait for the steps before the model", most_waiting_)};
  runs_.add(job, run);
  if (quick) {
    const auto refusal = run->prepare();
    return refusal ? Status(refusal->error) : Status();
  }
  threads_->submit(run, StepThreads::Place::kBefore, [run = run.get()] {
    if (const auto refusal = run->prepare()) run->answer(*refusal);
  });
  return {};
}

void StepsScheduler::withdraw(const JobPtr& job) {
  const auto run = runs_.find(job);
  if (!run) return;
  threads_->drop(run.get());
  run->withdraw();
}

}  // namespace serin::serving
