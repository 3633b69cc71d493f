// batcher.h: the queue of a model version. A free instance takes queued requests at once; while all are busy, the batch grows.
//
//   auto batcher = std::make_shared<Batcher>(options, pool, [](size_t instance, std::span<const JobPtr> batch) { ... run, answer ... });
//   Status status = batcher->submit(job);      // kOverloaded: the queue is full, or the answer would come too late
//
// With a latency goal (slo), a batch is the largest in which every request meets its goal. A request that cannot be answered in time, by
// the times that the curve has learned, is refused at once. With max_queue_delay, an instance waits for more rows although it is free.
//
// An instance that cannot run any longer (its device is lost) is retired before it takes another batch; queued requests go to the others.
// When none is left, queued and later requests are answered with the reason.
//
// If the options allow it, a short batch runs on the io thread that read its requests: batcher_on_io.cc.
//
// Thread-safe. Pool tasks keep the batcher alive, so it may be released at any time: queued requests still run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/mutex.h"
#include "runtime/base/result.h"
#include "runtime/serving/host/compute_pool.h"
#include "runtime/serving/scheduling/batch_curve.h"
#include "runtime/serving/scheduling/job.h"
#include "runtime/serving/scheduling/job_queue.h"

namespace serin::serving {

class Batcher : public std::enable_shared_from_this<Batcher> {
 public:
  struct Options {
    size_t instances = 1;
    int64_t max_batch = 1;  ///< rows; 1: every job runs alone
    QueuePolicies queues = {};
    std::chrono::nanoseconds slo{0};              ///< from arrival to answer; 0: none
    std::chrono::nanoseconds max_queue_delay{0};  ///< how long the first job of a batch is held back for others
    /// Short batches may run there: instances are never lost and wait for no other, and there is no max_queue_delay.
    bool on_io_threads = false;
    bool by_turns = false;  ///< use all instances equally; otherwise the one that ran last goes first, because its caches are warm
  };
  /// Runs and answers one batch on one instance; all its jobs are of one group. There is never a second call at the same time for one
  /// instance. False is allowed only on an io thread (`on_io`): the batch must run again on a compute thread, because it failed or needs
  /// preparation.
  using Run = std::function<bool(size_t instance, std::span<const JobPtr> batch, bool on_io)>;
  /// Whether an instance can run a batch; called before each.
  using Usable = std::function<Status(size_t instance)>;

  Batcher(Options options, ComputePool& pool, Run run, Usable usable = [](size_t) { return Status(); });

  /// kOverloaded if the queue is full or the job's time too short; the error of the last instance if none is left.
  Status submit(JobPtr job);
  /// Like Scheduler::withdraw.
  void withdraw(const Job& job);
  size_t queued() const;
  /// Nothing is queued, and nothing runs.
  bool idle() const;
  /// Records the duration of a batch of that many rows in the curve of its sizes (Job::group).
  void learn(const std::vector<int64_t>& group, int64_t bucket_rows, std::chrono::nanoseconds took);
  /// Seconds until a refused request has a chance, for Retry-After: at least 1.
  int64_t retry_after_seconds() const;

 private:
  struct Forming;

  void work(size_t instance);
  void go_on(size_t instance);
  void start(size_t instance);
  void look_on_io(const net::Loop& loop);
  void work_on_io(size_t instance);
  static void refuse_expired(std::span<const JobPtr> jobs);
  void retire(const Error& why);
  std::optional<size_t> take_free() SERIN_REQUIRES(mutex_);
  std::optional<size_t> wake_for(const Job& job) SERIN_REQUIRES(mutex_);
  net::Loop* loop_to_run_on(const Job& job) const SERIN_REQUIRES(mutex_);
  void bar_if_surprising(const BatchCurve& known, int64_t rows, std::chrono::nanoseconds took) SERIN_REQUIRES(mutex_);
  bool mark_loop(const net::Loop& loop) SERIN_REQUIRES(mutex_);
  std::vector<size_t> wake_for_rest(size_t instance) SERIN_REQUIRES(mutex_);
  void wait_for_more() SERIN_REQUIRES(mutex_);
  void take(Clock::time_point now, std::vector<JobPtr>& batch, std::chrono::nanoseconds longest = std::chrono::nanoseconds::max())
      SERIN_REQUIRES(mutex_);
  const BatchCurve& curve(const std::vector<int64_t>& group) const SERIN_REQUIRES(mutex_);
  std::chrono::nanoseconds predict(std::span<const JobPtr> batch) const SERIN_REQUIRES(mutex_);
  int64_t worthwhile_rows(const BatchCurve& curve) const;
  Clock::time_point goal(const Job& job) const;
  Clock::time_point latest_start(const Job& job) const SERIN_REQUIRES(mutex_);
  Status check_in_time(const Job& job, Clock::time_point now) const SERIN_REQUIRES(mutex_);
  std::chrono::nanoseconds time_to_answer(const Job& job, Clock::time_point now) const SERIN_REQUIRES(mutex_);

  const Options options_;
  ComputePool& pool_;
  const Run run_;
  const Usable usable_;

  mutable Mutex mutex_;
  JobQueue queue_ SERIN_GUARDED_BY(mutex_);
  std::vector<size_t> free_ SERIN_GUARDED_BY(mutex_);                           // free instances; the last element ended last
  std::vector<std::vector<JobPtr>> batches_;                                    // for each instance, which alone uses it
  std::vector<Clock::time_point> busy_until_ SERIN_GUARDED_BY(mutex_);          // for each instance, as predicted
  std::vector<const net::Loop*> on_io_ SERIN_GUARDED_BY(mutex_);                // io threads that check the queue after all events
  Clock::time_point barred_until_ SERIN_GUARDED_BY(mutex_){};                   // until then, no batch runs on io threads
  std::chrono::nanoseconds bar_ SERIN_GUARDED_BY(mutex_){0};                    // length of the last such period
  size_t working_ SERIN_GUARDED_BY(mutex_) = 0;                                 // instances that are not retired
  Status ended_ SERIN_GUARDED_BY(mutex_);                                       // the reason why none is left
  std::map<std::vector<int64_t>, BatchCurve> curves_ SERIN_GUARDED_BY(mutex_);  // by Job::group
  double ns_per_row_ SERIN_GUARDED_BY(mutex_) = 0;
  Forming* forming_ SERIN_GUARDED_BY(mutex_) = nullptr;  // state of the one instance that waits for more rows
  Condition more_;
};

}  // namespace serin::serving
