// splitting_scheduler.cc: one Run for each request, held by the parts that are under way. Each copies its rows of the outputs to where they belong; the last one
// answers.

#include "runtime/serving/scheduling/splitting_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "runtime/serving/scheduling/rows.h"

namespace serin::serving {
namespace {

/// Tensors that are there once all their rows are.
struct Whole {
  std::vector<TensorView> tensors;
  AlignedBuffer memory;
  std::vector<std::vector<std::string>> texts;  // of each tensor

  /// As those of a part, with so many rows. kTooLarge, kOverloaded.
  static Result<std::shared_ptr<Whole>> like(std::span<const TensorView> part, int64_t rows) {
    auto whole = std::make_shared<Whole>();
    size_t bytes = 0;
    for (const TensorView& one : part) {
      TensorView& tensor = whole->tensors.emplace_back(one);
      tensor.shape[0] = rows;
      const size_t row_bytes = row_bytes_of(one);
      const bool fits = row_bytes == 0 || static_cast<size_t>(rows) <= kMostResultBytes / row_bytes;
      if (fits) bytes += AlignedBuffer::rounded_up(tensor.bytes());
      if (!fits || bytes > kMostResultBytes)
        return Error{Code::kTooLarge, fmt::format("the results of {} rows would take more than {} bytes", rows, kMostResultBytes)};
    }
    try {
      whole->memory = AlignedBuffer(std::max<size_t>(bytes, 1));  // what is empty has a place, too
      for (const TensorView& tensor : whole->tensors)
        whole->texts.emplace_back(tensor.dtype == DType::kString ? static_cast<size_t>(tensor.elements()) : 0);
    } catch (const std::bad_alloc&) {
      return Error{Code::kOverloaded, fmt::format("there is no memory for the results of {} rows", rows)};
    }
    size_t at = 0;
    for (size_t i = 0; i < whole->tensors.size(); ++i) {
      TensorView& tensor = whole->tensors[i];
      tensor.data = tensor.dtype == DType::kString ? static_cast<void*>(whole->texts[i].data()) : whole->memory.data() + at;
      at += AlignedBuffer::rounded_up(tensor.bytes());
    }
    return whole;
  }

  Status put(std::span<const TensorView> part, int64_t first, int64_t rows) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const TensorView to = rows_of(tensors[i], first, rows);
      if (part[i].shape != to.shape)
        return Error{Code::kInternal,
                     fmt::format("output {} of a part of the request is {}, not {}", i, part[i].shape.str(), to.shape.str())};
      if (to.dtype == DType::kString)
        std::ranges::copy(part[i].span<const std::string>(), to.as<std::string>());
      else if (to.bytes() > 0)
        std::memcpy(to.data, part[i].data, to.bytes());
    }
    return {};
  }
};

}  // namespace

class SplittingScheduler::Run : public std::enable_shared_from_this<Run> {
 public:
  Run(std::shared_ptr<SplittingScheduler> scheduler, JobPtr job) : scheduler_(std::move(scheduler)), job_(std::move(job)) {}
  ~Run() { scheduler_->runs_.remove(job_); }

  /// An error: no part was taken, and nobody is answered.
  Status begin() {
    Status taken = go_on();
    if (taken) return {};
    if (nothing_taken()) return taken;
    fail(taken.error(), {});
    return {};
  }

  /// Of parts that wait none is of use any more.
  void withdraw() {
    std::vector<JobPtr> waiting;
    {
      const MutexLock lock(mutex_);
      for (const auto& part : parts_)
        if (auto job = part.lock()) waiting.push_back(std::move(job));
    }
    for (const JobPtr& part : waiting) scheduler_->below_->withdraw(part);
  }

 private:
  /// The next parts, as many as there may be. One thread at a time gives them.
  Status go_on() {
    const MutexLock lock(mutex_);
    if (std::exchange(giving_, true)) return {};
    Status taken;
    while (taken && parts_under_way_ < scheduler_->most_parts_ && next_row_ < job_->rows && !job_->given_up()) {
      const JobPtr part = next_part();
      const MutexUnlock unlocked(mutex_);
      taken = scheduler_->below_->submit(part);
    }
    giving_ = false;
    return taken;
  }

  bool nothing_taken() {
    const MutexLock lock(mutex_);
    return next_row_ <= scheduler_->most_rows_;
  }

  JobPtr next_part() SERIN_REQUIRES(mutex_) {
    const JobPtr part = part_of(job_);
    const int64_t first = std::exchange(next_row_, std::min(job_->rows, next_row_ + scheduler_->most_rows_));
    part->rows = next_row_ - first;
    for (const TensorView& input : job_->inputs) part->inputs.push_back(rows_of(input, first, part->rows));
    part->patience = job_->patience;
    part->admitted = job_->admitted || first > 0;
    part->behind = first > 0 ? 0 : job_->rows - part->rows;
    if (first == 0) part->pending.take_over(job_->pending);
    part->done = [self = shared_from_this(), first, rows = part->rows](const Answer& answer) { self->finish_part(first, rows, answer); };
    ++parts_under_way_;
    std::erase_if(parts_, [](const auto& known) { return known.expired(); });
    parts_.push_back(part);
    return part;
  }

  void finish_part(int64_t first, int64_t rows, const Answer& answer) {
    Status put = answer.outputs ? Status() : Status(answer.outputs.error());
    if (put) put = place(first, rows, answer);
    if (!put)
      return fail(scheduler_->most_rows_ == 1 ? put.error().in(fmt::format("row {}", first)) : put.error(), answer.batch, answer.refused);
    bool last = false;
    {
      const MutexLock lock(mutex_);
      --parts_under_way_;
      if (rows_done_ == 0) {
        timing_.queue = answer.timing.queue;
        batch_ = answer.batch;
      }
      timing_.input += answer.timing.input;
      timing_.infer += answer.timing.infer;
      timing_.output += answer.timing.output;
      rows_done_ += rows;
      last = rows_done_ == job_->rows;
    }
    if (last) return succeed();
    if (const Status taken = go_on(); !taken) fail(taken.error(), {});
  }

  /// Parts do so side by side.
  Status place(int64_t first, int64_t rows, const Answer& answer) {
    std::shared_ptr<Whole> whole;
    {
      const MutexLock lock(mutex_);
      if (!whole_) {
        SERIN_TRY(whole_, Whole::like(answer.outputs->tensors, job_->rows));
      }
      whole = whole_;
    }
    return whole->put(answer.outputs->tensors, first, rows);
  }

  /// Parts ran side by side, or waited for one another: their times are what each takes of the time that it took.
  void succeed() {
    std::shared_ptr<Whole> whole;
    protocol::BatchTag batch;
    {
      const MutexLock lock(mutex_);
      const auto computed = timing_.input + timing_.infer + timing_.output;
      const auto took = Clock::now() - began_ - timing_.queue;
      const double share = computed.count() > 0 ? static_cast<double>(took.count()) / static_cast<double>(computed.count()) : 0;
      for (auto* const part : {&timing_.input, &timing_.infer, &timing_.output})
        *part = std::chrono::nanoseconds(static_cast<int64_t>(static_cast<double>(part->count()) * share));
      whole = whole_;
      batch = batch_;
    }
    answer(Outputs::of(std::move(whole->tensors), whole), batch);
  }

  void fail(const Error& why, const protocol::BatchTag& batch, bool refused = false) {
    answer(why, batch, refused);
    stop();
  }

  void stop() {
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

  const std::shared_ptr<SplittingScheduler> scheduler_;
  const JobPtr job_;
  const Clock::time_point began_ = Clock::now();
  std::atomic<bool> answered_{false};

  Mutex mutex_;
  std::vector<std::weak_ptr<Job>> parts_ SERIN_GUARDED_BY(mutex_);
  std::shared_ptr<Whole> whole_ SERIN_GUARDED_BY(mutex_);  // made by the first part that is there; each writes its own rows
  size_t parts_under_way_ SERIN_GUARDED_BY(mutex_) = 0;
  int64_t next_row_ SERIN_GUARDED_BY(mutex_) = 0;
  int64_t rows_done_ SERIN_GUARDED_BY(mutex_) = 0;
  bool giving_ SERIN_GUARDED_BY(mutex_) = false;
  Timing timing_ SERIN_GUARDED_BY(mutex_);
  protocol::BatchTag batch_ SERIN_GUARDED_BY(mutex_);
};

Status SplittingScheduler::submit(JobPtr job) {
  if (job->rows <= most_rows_) return below_->submit(std::move(job));
  const auto run = std::make_shared<Run>(shared_from_this(), job);
  runs_.add(job, run);
  return run->begin();
}

void SplittingScheduler::withdraw(const JobPtr& job) {
  const auto run = runs_.find(job);
  if (run)
    run->withdraw();
  else
    below_->withdraw(job);
}

}  // namespace serin::serving
