// ensemble_scheduler.cc: one Run for each request, held by the steps that are under way; with the last of them it goes, and with it the tensors that nobody reads
// any more.

#include "runtime/serving/scheduling/ensemble_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/mutex.h"
#include "runtime/serving/scheduling/counted.h"

namespace serin::serving {
namespace {

/// What a codec checks of a client's tensor, of one that a step has made: sizes that only the run knows may be those that the next model does not take.
Status check_tensor(const protocol::TensorSpec& spec, const TensorView& tensor) {
  if (spec.takes(tensor.shape)) return {};
  return Error{Code::kInvalidArgument,
               fmt::format("its input '{}' expects {}, the step before made {}", spec.name, spec.shape.str(), tensor.shape.str())};
}

}  // namespace

class EnsembleScheduler::Run : public std::enable_shared_from_this<Run> {
 public:
  Run(std::shared_ptr<EnsembleScheduler> scheduler, JobPtr job)
      : scheduler_(std::move(scheduler)), plan_(scheduler_->plan_), job_(std::move(job)) {
    tensors_.resize(plan_.tensors);
    for (const EnsemblePlan::Step& step : plan_.steps) missing_.push_back(step.inputs.size());
    steps_left_ = plan_.steps.size();
    jobs_.resize(plan_.steps.size());
  }
  ~Run() { scheduler_->runs_.remove(job_); }

  void begin() {
    std::vector<size_t> ready;
    {
      const MutexLock lock(mutex_);
      for (size_t i = 0; i < missing_.size(); ++i)
        if (missing_[i] == 0) ready.push_back(i);
      for (size_t i = 0; i < job_->inputs.size(); ++i) give(i, {job_->inputs[i], job_}, ready);
    }
    for (const size_t step : ready) start(step);
  }

  /// Of steps that wait none is of use any more.
  void withdraw() {
    std::vector<std::pair<const EnsemblePlan::Step*, JobPtr>> waiting;
    {
      const MutexLock lock(mutex_);
      for (size_t i = 0; i < jobs_.size(); ++i)
        if (auto job = jobs_[i].lock()) waiting.emplace_back(&plan_.steps[i], std::move(job));
    }
    for (const auto& [step, job] : waiting) step->model->withdraw(job);
  }

 private:
  struct Tensor {
    TensorView view;
    std::shared_ptr<const void> memory;
  };

  /// A tensor is there; steps that waited for nothing else are ready.
  void give(size_t tensor, Tensor value, std::vector<size_t>& ready) SERIN_REQUIRES(mutex_) {
    tensors_[tensor] = std::move(value);
    for (const size_t reader : plan_.readers[tensor])
      if (--missing_[reader] == 0) ready.push_back(reader);
  }

  void start(size_t index) {
    const EnsemblePlan::Step& step = plan_.steps[index];
    const JobPtr job = part_of(job_);
    const auto held = std::make_shared<std::vector<std::shared_ptr<const void>>>();
    {
      const MutexLock lock(mutex_);
      for (const size_t tensor : step.inputs) {
        job->inputs.push_back(tensors_[tensor].view);
        held->push_back(tensors_[tensor].memory);
      }
    }
    for (size_t i = 0; i < job->inputs.size(); ++i)
      if (const Status fits = check_tensor(step.model->signature().inputs[i], job->inputs[i]); !fits) return fail(step, fits.error(), {});
    job->sequence = job_->sequence;
    if (job_->trace != 0) job->trace = scheduler_->tracer_.begin_part();
    const int64_t rows = step.model->batchable() && !job->inputs.empty() ? job->inputs.front().shape[0] : 1;
    const auto counted = std::make_shared<Counted>(step.model, !job->shadow, rows);
    job->holds = held;
    job->done = [self = shared_from_this(), index, counted,
                 trace = Trace{.id = job->trace, .parent = job_->trace, .arrived = job->arrived, .queued = job->arrived}](Answer answer) {
      counted->answered(answer);
      if (trace.id != 0) self->told(index, trace, answer);
      self->finish_step(index, std::move(answer));
    };
    {
      const MutexLock lock(mutex_);
      jobs_[index] = job;
    }
    if (const Status taken = step.model->submit(job); !taken) {
      counted->refused(taken.error());
      fail(step, taken.error(), {});
    }
  }

  void told(size_t index, Trace trace, const Answer& answer) {
    const ServedModel& model = *plan_.steps[index].model;
    trace.end(answer.ending());
    scheduler_->tracer_.add(trace, model.model(), model.version(), "");
  }

  void finish_step(size_t index, Answer answer) {
    const EnsemblePlan::Step& step = plan_.steps[index];
    if (!answer.outputs) return fail(step, answer.outputs.error(), answer.batch, answer.refused);
    std::vector<size_t> ready;
    bool last = false;
    {
      const MutexLock lock(mutex_);
      timing_ += answer.timing;
      for (const auto& [output, tensor] : step.outputs) give(tensor, {answer.outputs->tensors[output], answer.outputs->block}, ready);
      last = --steps_left_ == 0;
    }
    if (last) return succeed(answer.batch);
    if (job_->given_up()) return;
    for (const size_t next : ready) start(next);
  }

  void succeed(const protocol::BatchTag& batch) {
    auto memory = std::make_shared<std::vector<std::shared_ptr<const void>>>();
    std::vector<TensorView> outputs;
    Timing timing;
    {
      const MutexLock lock(mutex_);
      for (const size_t tensor : plan_.outputs) {
        outputs.push_back(tensors_[tensor].view);
        memory->push_back(tensors_[tensor].memory);
      }
      timing = timing_;
    }
    if (!job_->shadow) {
      scheduler_->metrics_->ran_batch();
      scheduler_->metrics_->measured_batch(job_->rows, timing);
    }
    answer(Outputs::of(std::move(outputs), std::move(memory)), batch);
  }

  /// The first failure is the answer; what else is under way is of no use to anybody.
  void fail(const EnsemblePlan::Step& step, const Error& why, const protocol::BatchTag& batch, bool refused = false) {
    answer(why.in(step.name).in(plan_.signature.model), batch, refused);
    job_->abandoned = true;
    withdraw();
  }

  void answer(Result<Outputs> outputs, const protocol::BatchTag& batch, bool refused = false) {
    if (answered_.exchange(true)) return;
    Answer answer;
    answer.outputs = std::move(outputs);
    answer.batch = batch;
    answer.refused = refused;
    {
      const MutexLock lock(mutex_);
      answer.timing = timing_;
    }
    job_->answer(std::move(answer));
  }

  const std::shared_ptr<EnsembleScheduler> scheduler_;
  const EnsemblePlan& plan_;
  const JobPtr job_;
  std::atomic<bool> answered_{false};

  Mutex mutex_;
  std::vector<Tensor> tensors_ SERIN_GUARDED_BY(mutex_);
  std::vector<size_t> missing_ SERIN_GUARDED_BY(mutex_);           // tensors, of each step
  std::vector<std::weak_ptr<Job>> jobs_ SERIN_GUARDED_BY(mutex_);  // of steps that were started
  size_t steps_left_ SERIN_GUARDED_BY(mutex_) = 0;
  Timing timing_ SERIN_GUARDED_BY(mutex_);
};

Status EnsembleScheduler::submit(JobPtr job) {
  const auto run = std::make_shared<Run>(shared_from_this(), job);
  runs_.add(job, run);
  job->pending.end();  // it runs: its steps wait, each for its own model
  run->begin();
  return {};
}

void EnsembleScheduler::withdraw(const JobPtr& job) {
  const auto run = runs_.find(job);
  if (run) run->withdraw();
}

int64_t EnsembleScheduler::retry_after_seconds() const {
  int64_t seconds = 1;
  for (const EnsemblePlan::Step& step : plan_.steps) seconds = std::max(seconds, step.model->retry_after_seconds());
  return seconds;
}

Status EnsembleScheduler::usable() const {
  for (const EnsemblePlan::Step& step : plan_.steps) SERIN_CHECK(step.model->usable());
  return {};
}

}  // namespace serin::serving
