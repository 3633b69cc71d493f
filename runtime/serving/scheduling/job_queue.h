// job_queue.h: the jobs that wait for an instance, in the order in which they go: the more urgent priority first, within one who came first; who waited longer
// than the queue lets them (QueuePolicy::delay), behind the others of their priority; shadow traffic behind all.
//
// Each priority, and shadow traffic, has a limit of its own: a flood of one keeps nobody out of the others. Not thread-safe: the batcher's lock is around it.
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

  /// kOverloaded: its priority's limit.
  Status push(JobPtr job);
  /// Puts back those that waited too long; hands out those that are to be refused for it, and those that nobody waits for any more.
  std::vector<JobPtr> sweep(Clock::time_point now);
  /// Null where it does not wait here.
  JobPtr remove(const Job& job);

  /// Of one priority at least.
  bool half_full() const;
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  /// In the order in which they go.
  const Entries& entries() const { return entries_; }
  /// Requires that there is one.
  const JobPtr& front() const { return entries_.begin()->second.job; }
  size_t rank_of(const Job& job) const;

  /// Hands out, in order, those that `wanted(job)` says yes to.
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
  std::pmr::unsynchronized_pool_resource memory_;  // a queue that moves on takes none anew
  Entries entries_{&memory_};                      // by rank: 2 * level, one more for those that are late
  uint64_t last_ = 0;                              // number that was given
  std::vector<size_t> waiting_;                    // at each level; the last is shadow traffic
};

}  // namespace serin::serving
