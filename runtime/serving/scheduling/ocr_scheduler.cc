// ocr_scheduler.cc: one Run for each page, held by its work on a step thread or by its jobs in the two models.

#include "runtime/serving/scheduling/ocr_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "runtime/serving/scheduling/counted.h"

namespace serin::serving {
namespace {

using steps::Made;
using steps::Ocr;

Status check_model(const ServedModel& model, std::string_view part) {
  const auto& inputs = model.signature().inputs;
  if (inputs.size() == 1 && inputs[0].dtype == DType::kFloat32 && inputs[0].ranked && inputs[0].shape.rank() == 4 &&
      !model.signature().outputs.empty())
    return {};
  return invalid(fmt::format("{} '{}' must have one input, FP32 [rows, 3, height, width]", part, model.model()));
}

}  // namespace

class OcrScheduler::Run : public std::enable_shared_from_this<Run> {
 public:
  Run(std::shared_ptr<OcrScheduler> scheduler, JobPtr job)
      : scheduler_(std::move(scheduler)), ocr_(*scheduler_->ocr_), job_(std::move(job)) {}
  ~Run() { scheduler_->runs_.remove(job_); }

  /// Reads the picture, and hands it to the detector.
  void read() {
    if (job_->given_up()) return;
    const auto began = Clock::now();
    auto page = guarded([&] { return ocr_.read(job_->inputs.front().as<const std::string>()[0]); });
    if (!page)
      return fail(page.error().in(fmt::format("input '{}'", ocr_.settings().input)), /*refused=*/page.error().code != Code::kOverloaded);
    page_ = std::move(*page);
    measure(*scheduler_->read_seconds_, began, timing_.input);
    const auto held = std::make_shared<Made>(std::move(page_.input));
    if (const Status taken =
            run_in(scheduler_->detector_, held, [self = shared_from_this()](Answer answer) { self->found(std::move(answer)); });
        !taken)
      fail(taken.error());
  }

  void withdraw() {
    std::vector<std::pair<const ServedModel*, JobPtr>> waiting;
    {
      const MutexLock lock(mutex_);
      for (const auto& [model, part] : parts_)
        if (auto job = part.lock()) waiting.emplace_back(model, std::move(job));
    }
    for (const auto& [model, job] : waiting) model->withdraw(job);
  }

 private:
  static void measure(metrics::Histogram& histogram, Clock::time_point began, std::chrono::nanoseconds& total) {
    const auto took = Clock::now() - began;
    histogram.observe(std::chrono::duration<double>(took).count());
    total += took;
  }

  /// Submits a tensor of one row.
  Status run_in(const std::shared_ptr<const ServedModel>& model, const std::shared_ptr<Made>& input, UniqueFunction<void(Answer)> done) {
    const JobPtr part = part_of(job_);
    TensorView view = input->view();
    view.shape = Shape{1, view.shape[0], view.shape[1], view.shape[2]};
    const protocol::TensorSpec& spec = model->signature().inputs.front();
    if (!spec.takes(view.shape))
      return invalid(fmt::format("model '{}' takes {} as '{}', and not {}", model->model(), spec.shape.str(), spec.name, view.shape.str()));
    part->inputs = {view};
    part->holds = input;
    part->admitted = model == scheduler_->recognizer_;  // a line belongs to a page that was accepted
    const auto counted = std::make_shared<Counted>(model, !job_->shadow, 1);
    part->done = [counted, done = std::move(done)](Answer answer) mutable {
      counted->answered(answer);
      done(std::move(answer));
    };
    {
      const MutexLock lock(mutex_);
      std::erase_if(parts_, [](const auto& known) { return known.second.expired(); });
      parts_.emplace_back(model.get(), part);
    }
    Status taken = model->submit(part);
    if (!taken) counted->refused(taken.error());
    return taken;
  }

  void found(Answer answer) {
    if (!answer.outputs) return fail(answer.outputs.error().in("detector"));
    {
      const MutexLock lock(mutex_);
      timing_ += answer.timing;
      batch_ = answer.batch;
    }
    const auto outputs = std::make_shared<Outputs>(std::move(*answer.outputs));
    scheduler_->threads_->submit(shared_from_this(), StepThreads::Place::kAfter, [this, outputs] { cut_lines(*outputs); });
  }

  /// Cuts the lines out of the picture, and hands the first ones to the recognizer.
  void cut_lines(const Outputs& outputs) {
    if (job_->given_up()) return;
    const auto began = Clock::now();
    std::chrono::nanoseconds took{0};
    auto lines = guarded([&] { return ocr_.find(page_, outputs.tensors.front()); });
    measure(*scheduler_->find_seconds_, began, took);
    if (!lines) return fail(Error{Code::kInternal, "detector: " + lines.error().message});
    lines_ = std::move(*lines);
    page_ = {};
    readings_.resize(lines_.size());
    {
      const MutexLock lock(mutex_);
      timing_.output += took;
      lines_left_ = lines_.size();
    }
    if (lines_.empty()) return succeed();
    submit_lines();
  }

  /// Submits lines while fewer than most_lines_ are in the recognizer. One thread at a time does so; others leave it the rest.
  void submit_lines() {
    const MutexLock lock(mutex_);
    if (std::exchange(submitting_, true)) return;
    while (lines_in_model_ < scheduler_->most_lines_ && next_line_ < lines_.size() && !answered_ && !job_->given_up()) {
      const size_t index = next_line_++;
      ++lines_in_model_;
      const MutexUnlock unlocked(mutex_);
      submit_line(index);
    }
    submitting_ = false;
  }

  void submit_line(size_t index) {
    auto input = guarded([&] { return ocr_.line_input(lines_[index]); });
    if (!input) return fail(Error{Code::kInternal, input.error().message});
    const auto held = std::make_shared<Made>(std::move(*input));
    const Status taken =
        run_in(scheduler_->recognizer_, held, [self = shared_from_this(), index](const Answer& answer) { self->read_line(index, answer); });
    if (!taken) fail(taken.error().in("recognizer"));
  }

  void read_line(size_t index, const Answer& answer) {
    if (!answer.outputs) return fail(answer.outputs.error().in("recognizer"));
    auto reading = guarded([&] { return ocr_.read_line(answer.outputs->tensors.front()); });
    if (!reading) return fail(reading.error().in("recognizer"));
    readings_[index] = std::move(*reading);
    bool last = false;
    {
      const MutexLock lock(mutex_);
      timing_ += answer.timing;
      --lines_in_model_;
      last = --lines_left_ == 0;
    }
    if (last) return succeed();
    submit_lines();
  }

  void succeed() {
    struct Block {
      std::vector<std::string> texts;
    };
    auto block = std::make_shared<Block>();
    block->texts.push_back(ocr_.answer(lines_, readings_));
    std::string* const text = block->texts.data();
    answer(Outputs::of({{DType::kString, {1}, text}}, std::move(block)), /*refused=*/false);
  }

  /// The first failure is the answer; lines that wait are of no use.
  void fail(const Error& why, bool refused = false) {
    answer(why, refused);
    job_->abandoned = true;
    withdraw();
  }

  void answer(Result<Outputs> outputs, bool refused) {
    if (answered_.exchange(true)) return;
    Answer answer;
    answer.outputs = std::move(outputs);
    answer.refused = refused;
    {
      const MutexLock lock(mutex_);
      answer.timing = timing_;
      answer.batch = batch_;
    }
    job_->answer(std::move(answer));
  }

  const std::shared_ptr<OcrScheduler> scheduler_;
  const Ocr& ocr_;
  const JobPtr job_;
  Ocr::Page page_;                        // until its lines are cut out; one thread at a time has it
  std::vector<Ocr::Line> lines_;          // settled before the first of them is submitted
  std::vector<steps::Reading> readings_;  // each is written once
  std::atomic<bool> answered_{false};

  Mutex mutex_;
  std::vector<std::pair<const ServedModel*, std::weak_ptr<Job>>> parts_ SERIN_GUARDED_BY(mutex_);
  size_t next_line_ SERIN_GUARDED_BY(mutex_) = 0, lines_in_model_ SERIN_GUARDED_BY(mutex_) = 0, lines_left_ SERIN_GUARDED_BY(mutex_) = 0;
  bool submitting_ SERIN_GUARDED_BY(mutex_) = false;
  Timing timing_;  // under mutex_ once the detector has the page
  protocol::BatchTag batch_ SERIN_GUARDED_BY(mutex_);
};

OcrScheduler::OcrScheduler(std::shared_ptr<const Ocr> ocr, std::shared_ptr<const ServedModel> detector,
                           std::shared_ptr<const ServedModel> recognizer, size_t most_waiting, Host& host, ModelMetrics& metrics)
    : ocr_(std::move(ocr)),
      detector_(std::move(detector)),
      recognizer_(std::move(recognizer)),
      most_waiting_(most_waiting),
      most_lines_(2 * rows_at_a_time(recognizer_->max_batch(), recognizer_->instances())),
      threads_(std::make_shared<StepThreads>(host.pool)),
      read_seconds_(metrics.step_seconds(host.metrics, "read")),
      find_seconds_(metrics.step_seconds(host.metrics, "find")) {}

Result<std::shared_ptr<OcrScheduler>> OcrScheduler::make(const steps::OcrSettings& settings, const ServedModels& models,
                                                         size_t most_waiting, Host& host, ModelMetrics& metrics) {
  SERIN_CHECK(check_model(*models[0], "detector"));
  SERIN_CHECK(check_model(*models[1], "recognizer"));
  const protocol::TensorSpec& classes = models[1]->signature().outputs.front();
  if (classes.ranked && classes.shape.rank() > 0 && classes.shape.back() >= 0)
    if (const Status fits = settings.dictionary.fits(classes.shape.back()); !fits) return fits.error().in("recognizer");
  SERIN_TRY(auto ocr, Ocr::make(settings));
  return std::shared_ptr<OcrScheduler>(new OcrScheduler(std::move(ocr), models[0], models[1], most_waiting, host, metrics));
}

protocol::Signature OcrScheduler::signature(const std::string& name, const steps::OcrSettings& settings) {
  return {name,
          {{.name = settings.input, .dtype = DType::kString, .shape = {-1}, .body = true}},
          {{.name = settings.output, .dtype = DType::kString, .shape = {-1}}}};
}

Status OcrScheduler::submit(JobPtr job) {
  if (!job->admitted && threads_->waiting() >= most_waiting_)
    return Error{Code::kOverloaded, fmt::format("exceeds maximum queue size: {} pictures wait", most_waiting_)};
  const auto run = std::make_shared<Run>(shared_from_this(), job);
  runs_.add(job, run);
  job->pending.end();  // its parts wait, each for its own model
  threads_->submit(run, StepThreads::Place::kBefore, [run = run.get()] { run->read(); });
  return {};
}

void OcrScheduler::withdraw(const JobPtr& job) {
  const auto run = runs_.find(job);
  if (!run) return;
  threads_->drop(run.get());
  run->withdraw();
}

int64_t OcrScheduler::retry_after_seconds() const { return std::max(detector_->retry_after_seconds(), recognizer_->retry_after_seconds()); }

Status OcrScheduler::usable() const {
  SERIN_CHECK(detector_->usable());
  return recognizer_->usable();
}

}  // namespace serin::serving
