// batcher.h: the one queue of a model version. Work-conserving: a free instance takes what is queued at once; while all are busy the batch grows.
//
//   auto batcher = std::make_shared<Batcher>(options, pool, [](size_t instance, std::span<const JobPtr> batch) { ... run, answer ... });
//   Status status = batcher->submit(job);      // kOverloaded: the queue is full, or the answer would come too late
//
// With a goal for the latency (slo) a batch is the largest that lets all who ride in it meet theirs, and who cannot be answered in time, going by what the
// curve has learned, is refused at once. max_queue_delay is for those who want an instance to wait for more rows although it is free.
//
// An instance that can run no more (its device is lost) is retired before it takes another batch; what is queued is for the others. Once none is left, the
// queue and all who come later are answered with the reason.
//
// A batch that is short runs on the io thread that has read its requests, where the options allow it: batcher_on_io.cc.
//
// Thread-safe. Pool tasks keep the batcher alive, so it may be let go at any time: what is queued is still run.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/serving/scheduling/batch_curve.h"
#include "runtime/serving/scheduling/compute_pool.h"
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
    std::chrono::nanoseconds max_queue_delay{0};  ///< that the first of a batch is held back for others
    bool on_io_threads =
        false;              ///< short batches may run there: instances are never lost and wait for nobody, and there is no max_queue_delay
    bool by_turns = false;  ///< all instances are used alike; else the one that ran last goes first, whose caches are warm
  };
  /// Runs and answers one batch on one instance; all its jobs are of one group. Never called twice at the same time for one instance. False: it is to be
  /// run again on a compute thread, because something has to be made first or it failed; only on an io thread, which `on_io` says.
  using Run = std::function<bool(size_t instance, std::span<const JobPtr> batch, bool on_io)>;
  /// Whether an instance can run a batch; asked before each.
  using Usable = std::function<Status(size_t instance)>;

  Batcher(Options options, ComputePool& pool, Run run, Usable usable = [](size_t) { return Status(); });

  /// kOverloaded where the queue is full or the job's time too short; what the last instance said where none is left.
  Status submit(JobPtr job);
  /// As Scheduler::withdraw.
  void withdraw(const Job& job);
  size_t queued() const;
  /// Nothing queued and nothing running.
  bool idle() const;
  /// What the run of a batch of so many rows took; teaches the curve of its sizes (Job::group).
  void learn(const std::vector<int64_t>& group, int64_t bucket_rows, std::chrono::nanoseconds took);
  /// Seconds until a request refused now has a chance, for Retry-After: at least 1.
  int64_t retry_after_seconds() const;

 private:
  struct Forming;

  void work(size_t instance);
  void go_on(size_t instance);
  void start(size_t instance);
  void look_on_io();
  void work_on_io(size_t instance);
  static void refuse_expired(std::span<const JobPtr> jobs);
  void retire(const Error& why);
  // Those below require mutex_.
  std::optional<size_t> take_free();
  std::optional<size_t> wake_for(const Job& job);
  bool may_run_on_io(const Job& job) const;
  void bar_if_surprising(const BatchCurve& known, int64_t rows, std::chrono::nanoseconds took);
  bool mark_loop();
  std::vector<size_t> wake_for_rest(size_t instance);
  void wait_for_more(std::unique_lock<std::mutex>& lock);
  void take(Clock::time_point now, std::vector<JobPtr>& batch, std::chrono::nanoseconds longest = std::chrono::nanoseconds::max());
  const BatchCurve& curve(const std::vector<int64_t>& group) const;
  std::chrono::nanoseconds predict(std::span<const JobPtr> batch) const;
  int64_t worthwhile_rows(const BatchCurve& curve) const;
  Clock::time_point goal(const Job& job) const;
  Clock::time_point latest_start(const Job& job) const;
  Status check_in_time(const Job& job, Clock::time_point now) const;
  std::chrono::nanoseconds time_to_answer(const Job& job, Clock::time_point now) const;

  const Options options_;
  ComputePool& pool_;
  const Run run_;
  const Usable usable_;

  mutable std::mutex mutex_;
  JobQueue queue_;                                     // guarded by mutex_, as all below
  std::vector<size_t> free_;                           // instances with nothing to do; who ended last is last
  std::vector<std::vector<JobPtr>> batches_;           // of each instance, which it alone touches: not guarded
  std::vector<Clock::time_point> busy_until_;          // of each instance, as predicted
  std::vector<size_t> on_io_;                          // io threads that will look at the queue when they have read all
  Clock::time_point barred_until_{};                   // no batch runs on io threads
  std::chrono::nanoseconds bar_{0};                    // how long it was barred for the last time
  size_t working_ = 0;                                 // instances that are not retired
  Status ended_;                                       // why none is left
  std::map<std::vector<int64_t>, BatchCurve> curves_;  // by Job::group
  double ns_per_row_ = 0;
  Forming* forming_ = nullptr;  // of the one instance that waits for more rows
  std::condition_variable more_;
};

}  // namespace serin::serving
