// batcher.cc: submit() wakes an instance when one is free; an instance that ends a batch takes the next at once.
//
// The batch is formed when a compute thread begins to work, not when the request arrives: what came in between rides along.

#include "runtime/serving/scheduling/batcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/net/loop.h"

namespace serin::serving {
namespace {

constexpr size_t kMostCurves = 256;

void refuse(std::span<const JobPtr> jobs, const Error& why) {
  for (const JobPtr& job : jobs) {
    if (job->given_up()) continue;
    Answer answer;
    answer.outputs = why;
    job->answer(std::move(answer));
  }
}

}  // namespace

/// The batch that an instance waits with, until it is full enough or the first of its jobs must go.
struct Batcher::Forming {
  std::vector<int64_t> group;
  int64_t missing_rows = 0;
  Clock::time_point closes;

  void add(const Job& job, Clock::time_point latest_start) {
    if (job.group == group) missing_rows -= job.rows;
    closes = std::min(closes, latest_start);
  }
  void remove(const Job& job) {
    if (job.group == group) missing_rows += job.rows;
  }
  bool closed(Clock::time_point now) const { return missing_rows <= 0 || now >= closes; }
};

Batcher::Batcher(Options options, ComputePool& pool, Run run, Usable usable)
    : options_(std::move(options)),
      pool_(pool),
      run_(std::move(run)),
      usable_(std::move(usable)),
      queue_(options_.queues),
      batches_(options_.instances),
      busy_until_(options_.instances),
      working_(options_.instances) {
  for (size_t i = 0; i < options_.instances; ++i) free_.push_back(i);
}

Status Batcher::submit(JobPtr job) {
  std::optional<size_t> instance;
  net::Loop* look = nullptr;
  {
    const MutexLock lock(mutex_);
    if (!ended_) return ended_;
    if (job->given_up()) return {};  // it was withdrawn already
    if (options_.slo.count() > 0 && !job->admitted) SERIN_CHECK(check_in_time(*job, Clock::now()));
    const Job& queued = *job;
    SERIN_CHECK(queue_.push(std::move(job)));
    if (net::Loop* const here = loop_to_run_on(queued))
      look = mark_loop(*here) ? here : nullptr;
    else
      instance = wake_for(queued);
  }
  if (look) look->post([self = shared_from_this(), look] { self->look_on_io(*look); });
  if (instance) start(*instance);
  return {};
}

void Batcher::withdraw(const Job& job) {
  JobPtr gone;  // ends without the lock: who waits for it may be told
  const MutexLock lock(mutex_);
  gone = queue_.remove(job);
  if (!gone || !forming_) return;
  forming_->remove(job);
  if (!queue_.empty()) return;
  forming_->closes = Clock::time_point::min();  // nothing is left to be held back
  more_.notify_one();
}

/// Who is to take what was just queued: an instance that is free, unless one is up already and waits for more.
std::optional<size_t> Batcher::wake_for(const Job& job) {
  if (!forming_) return take_free();
  const auto closed = forming_->closes;
  forming_->add(job, latest_start(job));
  if (forming_->missing_rows <= 0 || forming_->closes < closed) more_.notify_one();
  return std::nullopt;
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

void Batcher::refuse_expired(std::span<const JobPtr> jobs) {
  if (jobs.empty()) return;
  refuse(jobs, {Code::kDeadlineExceeded, "the deadline passed while the request was queued"});
}

/// One instance less. What it would have taken is for another that has nothing to do; those that are busy look at the queue by themselves.
void Batcher::retire(const Error& why) {
  std::vector<JobPtr> stranded;
  std::optional<size_t> next;
  {
    const MutexLock lock(mutex_);
    if (--working_ == 0) {
      ended_ = why;
      queue_.take([](const Job&) { return true; }, stranded);
    } else if (!queue_.empty() && !forming_) {
      next = take_free();
    }
  }
  if (next) start(*next);
  refuse(stranded, why);
}

const BatchCurve& Batcher::curve(const std::vector<int64_t>& group) const {
  static const BatchCurve unknown;
  const auto found = curves_.find(group);
  return found == curves_.end() ? unknown : found->second;
}

std::chrono::nanoseconds Batcher::predict(std::span<const JobPtr> batch) const {
  int64_t rows = 0;
  for (const JobPtr& job : batch) rows += job->rows;
  return curve(batch.front()->group).predict(rows);
}

/// When it has to be answered; far away where nobody minds.
Clock::time_point Batcher::goal(const Job& job) const {
  return options_.slo.count() > 0 ? std::min(job.deadline, job.arrived + options_.slo) : job.deadline;
}

Clock::time_point Batcher::latest_start(const Job& job) const { return goal(job) - curve(job.group).predict(job.rows); }

/// The largest batch that is worth forming, were the rows there, and that takes no longer than a request may.
int64_t Batcher::worthwhile_rows(const BatchCurve& curve) const {
  int64_t rows = curve.choose(options_.max_batch, options_.max_batch);
  while (rows > 1 && options_.slo.count() > 0 && curve.predict(rows) > options_.slo) rows = (rows + 1) / 2;
  return rows;
}

/// The free instance's next batch, or the one that ends first; before it all that goes ahead of the job, in batches that are spread over all instances.
std::chrono::nanoseconds Batcher::time_to_answer(const Job& job, Clock::time_point now) const {
  const BatchCurve& own = curve(job.group);
  const int64_t most = worthwhile_rows(own);
  const size_t rank = queue_.rank_of(job);
  int64_t rows = job.behind;
  std::chrono::nanoseconds ahead{0};
  for (const auto& [place, entry] : queue_.entries()) {
    if (place.rank > rank) break;
    if (entry.job->group == job.group)
      rows += entry.job->rows;
    else
      ahead += curve(entry.job->group).predict(entry.job->rows);
  }
  ahead += rows / most * own.predict(most);
  std::chrono::nanoseconds until_one_is_free{0};
  if (free_.empty())
    until_one_is_free = std::max<std::chrono::nanoseconds>(*std::ranges::min_element(busy_until_) - now, std::chrono::nanoseconds(0));
  return until_one_is_free + ahead / static_cast<int64_t>(std::max<size_t>(working_, 1)) +
         own.predict(std::max(job.rows, std::min(rows % most + job.rows, most)));
}

Status Batcher::check_in_time(const Job& job, Clock::time_point now) const {
  const auto left = goal(job) - now, needed = time_to_answer(job, now);
  if (needed <= left) return {};
  const auto ms = [](std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e6; };
  return Error{Code::kOverloaded, fmt::format("the answer would take about {:.3g} ms, of which {:.3g} ms are left: {} requests are waiting",
                                              ms(needed), ms(std::max(left, Clock::duration(0))), queue_.size())};
}

/// An instance that is free holds its batch back until it has as many rows as are worth taking, or the first of its jobs must go.
void Batcher::wait_for_more() {
  if (queue_.empty()) return;
  const Job& lead = *queue_.front();
  Forming forming{lead.group, worthwhile_rows(curve(lead.group)), lead.arrived + options_.max_queue_delay};
  for (const auto& [place, entry] : queue_.entries()) forming.add(*entry.job, latest_start(*entry.job));
  forming_ = &forming;
  while (!forming.closed(Clock::now())) more_.wait_until(mutex_, forming.closes);
  forming_ = nullptr;
}

/// None where nothing waits, or where the next batch would take longer than `longest`; if that is a limit, then also where nobody knows.
void Batcher::take(Clock::time_point now, std::vector<JobPtr>& batch, std::chrono::nanoseconds longest) {
  if (queue_.empty()) return;
  const JobPtr lead = queue_.front();
  const auto fits = [&](const Job& job) { return job.shadow == lead->shadow && job.group == lead->group; };
  const BatchCurve& curve = this->curve(lead->group);
  int64_t wanted = 1;
  if (options_.max_batch > 1) {
    int64_t waiting = 0;
    for (const auto& [place, entry] : queue_.entries()) waiting += fits(*entry.job) ? entry.job->rows : 0;
    wanted = curve.choose(waiting, options_.max_batch);
  }
  const int64_t least = std::max(wanted, lead->rows);
  if (longest != std::chrono::nanoseconds::max() && (!curve.knows(least) || curve.predict(least) > longest)) return;
  // Whose goal cannot be met any more hurries nobody.
  const auto hurry = [&](const Job& job) {
    const auto by = options_.slo.count() > 0 ? goal(job) : Clock::time_point::max();
    return now + curve.predict(job.rows) <= by ? by : Clock::time_point::max();
  };
  int64_t rows = 0;
  auto earliest = Clock::time_point::max();
  queue_.take(
      [&](const Job& job) {
        const auto by = std::min(earliest, hurry(job));
        const bool leads = rows == 0;
        const bool rides =
            rows < wanted && fits(job) && rows + job.rows <= options_.max_batch && now + curve.predict(rows + job.rows) <= by;
        if (!leads && !rides) return false;
        rows += job.rows;
        earliest = by;
        return true;
      },
      batch);
}

void Batcher::work(size_t instance) {
  if (const Status usable = usable_(instance); !usable) return retire(usable.error());
  const bool waits = options_.max_queue_delay.count() > 0;
  std::vector<JobPtr> expired;
  std::vector<JobPtr>& batch = batches_[instance];
  std::optional<size_t> next;
  {
    const MutexLock lock(mutex_);
    if (forming_) return free_.push_back(instance);  // another one holds what is queued
    if (waits) wait_for_more();
    const auto now = Clock::now();
    expired = queue_.sweep(now);
    take(now, batch);
    if (waits && !queue_.empty()) next = take_free();  // who came while this one waited woke nobody
    if (!batch.empty()) busy_until_[instance] = now + predict(batch);
  }
  if (next) start(*next);
  refuse_expired(expired);
  if (!batch.empty()) run_(instance, batch, /*on_io=*/false);
  go_on(instance);
}

/// After a batch.
void Batcher::go_on(size_t instance) {
  batches_[instance].clear();
  {
    const MutexLock lock(mutex_);
    if (queue_.empty() || forming_) return free_.push_back(instance);
  }
  start(instance);  // to the end of the pool's queue rather than a loop here: other models' instances get their turn
}

size_t Batcher::queued() const {
  const MutexLock lock(mutex_);
  return queue_.size();
}

bool Batcher::idle() const {
  const MutexLock lock(mutex_);
  return queue_.empty() && free_.size() == working_;
}

void Batcher::learn(const std::vector<int64_t>& group, int64_t bucket_rows, std::chrono::nanoseconds took) {
  const MutexLock lock(mutex_);
  if (curves_.size() >= kMostCurves && !curves_.contains(group))
    curves_.clear();  // sizes without end: what was learned of them is of no use
  BatchCurve& curve = curves_[group];
  bar_if_surprising(curve, bucket_rows, took);
  curve.learn(bucket_rows, took);
  ns_per_row_ = static_cast<double>(took.count()) / static_cast<double>(bucket_rows);
}

int64_t Batcher::retry_after_seconds() const {
  const MutexLock lock(mutex_);
  const double seconds = ns_per_row_ * static_cast<double>(queue_.size()) / static_cast<double>(std::max<size_t>(working_, 1)) / 1e9;
  return std::clamp<int64_t>(static_cast<int64_t>(seconds + 1), 1, 60);
}

}  // namespace serin::serving
