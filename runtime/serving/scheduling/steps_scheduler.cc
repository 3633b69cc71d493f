// steps_scheduler.cc: one Run for each row, held by its work in the queue, and then by the model's job.

#include "runtime/serving/scheduling/steps_scheduler.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/steps/pipeline/paddle_steps.h"

namespace serin::serving {

class StepsScheduler::Run : public std::enable_shared_from_this<Run> {
 public:
  Run(std::shared_ptr<StepsScheduler> scheduler, JobPtr job)
      : scheduler_(std::move(scheduler)), steps_(scheduler_->steps_), job_(std::move(job)) {}
  ~Run() { scheduler_->runs_.remove(job_); }

  bool quick() const { return steps_.quick_before(job_->inputs); }

  /// An error: nobody is answered.
  struct Refusal {
    Error error;
    bool by_step = false;
  };
  std::optional<Refusal> prepare() {
    if (job_->given_up()) return std::nullopt;
    const auto began = Clock::now();
    auto before = guarded([&] { return steps_.before(job_->inputs, observe()); });
    if (!before) return Refusal{before.error(), before.error().code != Code::kOverloaded};
    const JobPtr inner = inner_job(*std::move(before));
    prepared_in_ = Clock::now() - began;
    {
      const MutexLock lock(mutex_);
      inner_ = inner;
    }
    if (const Status taken = scheduler_->below_->submit(inner); !taken) return Refusal{taken.error()};
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
    std::vector<std::optional<steps::Made>> made;
    JobPtr request;
  };

  steps::Observe observe() const {
    return [this](std::string_view part, std::chrono::nanoseconds took) { scheduler_->observe(part, took); };
  }

  JobPtr inner_job(RowSteps::Before before) {
    facts_ = std::move(before.facts);
    JobPtr inner = part_of(job_);
    inner->inputs = std::move(before.inputs);
    inner->patience = job_->patience;
    inner->admitted = job_->admitted;
    inner->behind = job_->behind;
    inner->holds = std::make_shared<Held>(Held{std::move(before.made), job_});
    inner->pending.take_over(job_->pending);
    inner->done = [self = shared_from_this()](Answer answer) { self->computed(std::move(answer)); };
    return inner;
  }

  void computed(Answer answer) {
    answer.timing.input += prepared_in_;
    if (!answer.outputs || steps_.pipeline().quick_after()) return finish(std::move(answer));
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
      std::vector<steps::Made> made;
    };
    SERIN_TRY(RowSteps::After after, guarded([&] { return steps_.after(model.tensors, facts_, observe()); }));
    auto block = std::make_shared<Block>(Block{model.block, std::move(after.made)});
    return Outputs::of(std::move(after.outputs), std::move(block));
  }

  const std::shared_ptr<StepsScheduler> scheduler_;
  const RowSteps& steps_;
  const JobPtr job_;
  steps::RowFacts facts_;
  std::chrono::nanoseconds prepared_in_{0};

  Mutex mutex_;
  std::weak_ptr<Job> inner_ SERIN_GUARDED_BY(mutex_);
};

StepsScheduler::StepsScheduler(std::shared_ptr<Scheduler> below, RowSteps steps, size_t most_waiting, Host& host, ModelMetrics& metrics)
    : below_(std::move(below)), steps_(std::move(steps)), most_waiting_(most_waiting), threads_(std::make_shared<StepThreads>(host.pool)) {
  for (const std::string_view part : steps_.pipeline().parts()) durations_.emplace(part, metrics.step_seconds(host.metrics, part));
}

Result<Served> StepsScheduler::over(Served served, const steps::StepsSettings& settings, size_t most_waiting, Host& host,
                                    const std::shared_ptr<ModelMetrics>& metrics) {
  protocol::Signature& signature = served.signature;
  SERIN_TRY(RowSteps steps, RowSteps::make(settings, signature.inputs, signature.outputs, served.batchable));
  signature.inputs = steps.client_inputs();
  signature.outputs = steps.client_outputs();
  served.scheduler =
      std::shared_ptr<StepsScheduler>(new StepsScheduler(std::move(served.scheduler), std::move(steps), most_waiting, host, *metrics));
  served.batchable = true;
  return served;
}

std::shared_ptr<const steps::StepsSettings> StepsScheduler::find_steps(const std::string& name, const std::string& path,
                                                                       const Served& served) {
  const auto file = steps::find_paddle_export(std::filesystem::path(path).parent_path());
  if (!file) return nullptr;
  const std::string base = std::filesystem::path(*file).filename();
  auto found = RowSteps::of_export(*file, served.signature.inputs, served.signature.outputs, served.batchable);
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
