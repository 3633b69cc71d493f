// batcher.cc: submit() wakes an instance when one is free; an instance that ends a batch takes the next at once.
//
// The batch is formed when a compute thread begins to work, not when the request arrives: what came in between rides along.

#include "runtime/serving/batcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace serin::serving {
namespace {

constexpr size_t kMostCurves = 256;

void refuse(std::span<const JobPtr> jobs, const Error& why) {
  for (const JobPtr& job : jobs) {
    if (job->abandoned) continue;
    Answer answer;
    answer.outputs = why;
    job->done(std::move(answer));
  }
}

}  // namespace

Batcher::Batcher(Options options, ComputePool& pool, Run run, Usable usable)
    : options_(options), pool_(pool), run_(std::move(run)), usable_(std::move(usable)), working_(options.instances) {
  for (size_t i = 0; i < options_.instances; ++i) free_.push_back(i);
}

Status Batcher::submit(JobPtr job) {
  size_t instance = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!ended_) return ended_;
    if (queue_.size() >= options_.queue_limit) {
      std::erase_if(queue_, [](const JobPtr& queued) { return queued->abandoned.load(); });  // the dead must not keep the living out
      if (queue_.size() >= options_.queue_limit)
        return Error{Code::kOverloaded, fmt::format("exceeds maximum queue size: {} requests are waiting", queue_.size())};
    }
    queue_.push_back(std::move(job));
    const auto free = take_free();
    if (!free) return {};
    instance = *free;
  }
  start(instance);
  return {};
}

std::optional<size_t> Batcher::take_free() {
  if (free_.empty()) return std::nullopt;
  const auto at = options_.by_turns ? free_.begin() : free_.end() - 1;
  const size_t instance = *at;
  free_.erase(at);
  return instance;
}

void Batcher::start(size_t instance) {
  pool_.submit([self = shared_from_this(), instance] { self->work(instance); });
}

/// One instance less. What it would have taken is for another that has nothing to do; those that are busy look at the queue by themselves.
void Batcher::retire(const Error& why) {
  std::deque<JobPtr> stranded;
  std::optional<size_t> next;
  {
    const std::lock_guard lock(mutex_);
    if (--working_ == 0) {
      ended_ = why;
      stranded = std::exchange(queue_, {});
    } else if (!queue_.empty()) {
      next = take_free();
    }
  }
  if (next) start(*next);
  refuse(std::vector(stranded.begin(), stranded.end()), why);
}

std::vector<JobPtr> Batcher::take(std::vector<JobPtr>& expired) {
  const auto now = Clock::now();
  std::erase_if(queue_, [&](const JobPtr& job) {
    if (job->abandoned) return true;
    if (job->deadline > now) return false;
    expired.push_back(job);
    return true;
  });
  if (queue_.empty()) return {};

  // Who waited longest leads; real requests go before shadow ones.
  auto lead = std::ranges::find_if(queue_, [](const JobPtr& job) { return !job->shadow; });
  if (lead == queue_.end()) lead = queue_.begin();
  std::vector<JobPtr> batch{*lead};
  queue_.erase(lead);
  if (options_.max_batch == 1) return batch;

  const auto fits = [&](const JobPtr& job) { return job->shadow == batch.front()->shadow && job->group == batch.front()->group; };
  int64_t waiting = batch.front()->rows;
  for (const JobPtr& job : queue_) waiting += fits(job) ? job->rows : 0;
  const auto curve = curves_.find(batch.front()->group);
  const int64_t wanted = (curve == curves_.end() ? BatchCurve() : curve->second).choose(waiting, options_.max_batch);

  int64_t rows = batch.front()->rows;
  for (auto job = queue_.begin(); job != queue_.end() && rows < wanted;) {
    if (!fits(*job) || rows + (*job)->rows > options_.max_batch) {
      ++job;
      continue;
    }
    rows += (*job)->rows;
    batch.push_back(std::move(*job));
    job = queue_.erase(job);
  }
  return batch;
}

void Batcher::work(size_t instance) {
  if (const Status usable = usable_(instance); !usable) return retire(usable.error());
  std::vector<JobPtr> expired, batch;
  {
    const std::lock_guard lock(mutex_);
    batch = take(expired);
  }
  refuse(expired, {Code::kDeadlineExceeded, "the deadline passed while the request was queued"});
  if (!batch.empty()) run_(instance, batch);
  batch.clear();

  {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) {
      free_.push_back(instance);
      return;
    }
  }
  start(instance);  // to the end of the pool's queue rather than a loop here: other models' instances get their turn
}

size_t Batcher::queued() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

bool Batcher::idle() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && free_.size() == working_;
}

void Batcher::learn(const std::vector<int64_t>& group, int64_t bucket_rows, std::chrono::nanoseconds took) {
  const std::lock_guard lock(mutex_);
  if (curves_.size() >= kMostCurves && !curves_.contains(group))
    curves_.clear();  // sizes without end: what was learned of them is of no use
  curves_[group].learn(bucket_rows, took);
  ns_per_row_ = static_cast<double>(took.count()) / static_cast<double>(bucket_rows);
}

int64_t Batcher::retry_after_seconds() const {
  const std::lock_guard lock(mutex_);
  const double seconds = ns_per_row_ * static_cast<double>(queue_.size()) / static_cast<double>(std::max<size_t>(working_, 1)) / 1e9;
  return std::clamp<int64_t>(static_cast<int64_t>(seconds + 1), 1, 60);
}

}  // namespace serin::serving
