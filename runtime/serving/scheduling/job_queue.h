// job_queue.h: the jobs that wait for an instance, in the order in which they run.
//
// The more urgent priority goes first, and within a priority the earlier job. A job that waited longer than its queue allows
// (QueuePolicy::delay) goes behind the others of its priority; shadow traffic goes behind all.
//
// Each priority, and shadow traffic, has its own limit, so that a flood of one does not block the others. Not thread-safe: the batcher's
// lock guards it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/serving/scheduling/job.h"
#include "runtime/serving/settings/queue_policy.h"

namespace serin::serving {

class JobQueue {
 public:
  struct Entry {
    JobPtr job;
    Clock::time_point expires;  ///< by its queue's policy
  };
  using Entries = std::pmr::map<QueuePlace, Entry>;

  explicit JobQueue(QueuePolicies policies) : policies_(std::move(policies)), waiting_(policies_.levels.size() + 1) {}

  /// kOverloaded: the limit of its priority.
  Status push(JobPtr job);
  /// Moves jobs that waited too long behind others. Returns jobs that must be refused for it, and abandoned jobs.
  std::vector<JobPtr> sweep(Clock::time_point now);
  /// Null if it does not wait here.
  JobPtr remove(const Job& job);

  /// For at least one priority.
  bool half_full() const;
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  /// In the order in which they run.
  const Entries& entries() const { return entries_; }
  /// Requires that it is not empty.
  const JobPtr& front() const { return entries_.begin()->second.job; }
  size_t rank_of(const Job& job) const;

  /// Takes out, in order, the jobs for which `wanted(job)` is true.
  template <class Wanted>
  void take(Wanted wanted, std::vector<JobPtr>& taken) {
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      if (!wanted(*entry->second.job)) {
        ++entry;
        continue;
      }
      taken.push_back(std::move(entry->second.job));
      entry = erase(entry);
    }
  }

 private:
  const QueuePolicy& policy_of(size_t level) const;
  void insert(size_t rank, Entry&& entry);
  Entries::iterator erase(Entries::iterator entry);

  const QueuePolicies policies_;
  std::pmr::unsynchronized_pool_resource memory_;  // lets a moving queue reuse its memory
  Entries entries_{&memory_};                      // by rank: 2 * level, plus one for late jobs
  uint64_t last_ = 0;                              // the last number given out
  std::vector<size_t> waiting_;                    // for each level; the last is shadow traffic
};

}  // namespace serin::serving
